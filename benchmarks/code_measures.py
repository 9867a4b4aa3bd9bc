"""Measure the code itself: its size, its functions, names defined twice, and what each command imports.

    python benchmarks/code_measures.py [CHECKOUT]            # the measures of docs/adr/0007
    python benchmarks/code_measures.py [CHECKOUT] --imports  # modules of ours behind predict, learn and run

A line of code has a token that is neither a comment nor a docstring. A function's length is that of its body.
"""

import argparse
import ast
import io
import os
import statistics
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from pathlib import Path

LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}

IMPORTS = """
import sys
from ssil.cli import main
code = main(sys.argv[1:])
print(" ".join(sorted(name for name in sys.modules if name.startswith("ssil.") or name == "lightning_fabric")))
sys.exit(code)
"""


def main() -> None:
    """Print the measures, or the modules that commands import."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkout", type=Path, nargs="?", default=Path(__file__).parents[1])
    parser.add_argument("--imports", action="store_true", help="count the modules that commands import")
    asked = parser.parse_args()
    if asked.imports:
        print_imports(asked.checkout / "src")
    else:
        print_measures(sorted((asked.checkout / "src" / "ssil").rglob("*.py")))


def print_measures(files: list[Path]) -> None:
    """Print the size of the package, of its functions and files, and the names that are defined twice."""
    code = {file: code_lines(file) for file in files}
    functions = sorted((length, f"{file.name}:{name}") for file in files for name, length in bodies(file, code[file]))
    lengths = [length for length, _ in functions]
    longest = max(files, key=lambda file: len(code[file]))
    modules = [file.stem for file in files if file.stem not in {"__init__", "__main__"}]
    print(f"files {len(files)}, lines of code {sum(map(len, code.values())):,}")
    print(f"functions {len(functions):,}: median {statistics.median(lengths):g} lines, ", end="")
    print(f"95th percentile {lengths[int(0.95 * len(lengths))]}, longest {functions[-1][0]} ({functions[-1][1]})")
    print(f"longest file {len(code[longest])} lines of code ({longest.name})")
    print(f"comment lines {sum(map(comment_lines, files))}")
    print(f"modules of one name: {twice(modules)}")
    print(f"classes of one name: {twice([name for file in files for name in classes(file)])}")
    print(f"modules named as one of the standard library: {sorted({*modules} & {*sys.stdlib_module_names})}")


def code_lines(file: Path) -> set[int]:
    """Return the numbers of the lines that have code on them."""
    source = file.read_text()
    texts: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            texts.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {
        line for token in tokens if token.type not in LAYOUT for line in range(token.start[0], token.end[0] + 1)
    } - texts


def comment_lines(file: Path) -> int:
    """Return how many lines hold a comment and nothing else."""
    return sum(line.lstrip().startswith("#") for line in file.read_text().splitlines())


def bodies(file: Path, code: set[int]) -> list[tuple[str, int]]:
    """Return the name of each function and the lines of code in its body."""
    found = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)]
    return [
        (node.name, sum(node.body[0].lineno <= line <= (node.end_lineno or node.lineno) for line in code))
        for node in found
    ]


def classes(file: Path) -> list[str]:
    """Return the names of the classes that a file defines at its top level."""
    return [node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.ClassDef)]


def twice(names: list[str]) -> list[str]:
    """Return the names that occur more than once."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


def print_imports(source: Path) -> None:
    """Run each command on made-up data in a process of its own, and print how many of our modules it imported."""
    with tempfile.TemporaryDirectory() as folder:
        images = Path(folder) / "images"
        make_images(images)
        model = str(Path(folder) / "model")
        small = ["--backbone", "resnet8", "--image-size", "16", "--epochs", "1"]
        commands = {
            "learn": ["learn", model, str(images), *small],
            "predict": ["predict", model, str(next((images / "class0").iterdir()))],
            "run": ["run", "--dataset", "digits", "--backbone", "resnet8", "--epochs", "1", "--tasks", "2"],
        }
        for name, command in commands.items():
            modules = imported(source, command)
            training = sorted({part for part in modules if part.split(".")[-1] in {"trainer", "engine"}})
            methods = sorted(module for module in modules if module.startswith("ssil.methods."))
            print(
                f"ssil {name}: {len(modules)} modules of ours; {', '.join(training) or 'no trainer, no engine'};",
                end="",
            )
            print(f" {len(methods)} method files; lightning_fabric: {'lightning_fabric' in modules}")


def make_images(folder: Path) -> None:
    """Write two classes of six noisy PNG files."""
    import numpy as np
    from PIL import Image

    random = np.random.default_rng(0)
    for label in range(2):
        (folder / f"class{label}").mkdir(parents=True)
        for number in range(6):
            pixels = random.integers(100 * label, 100 * label + 100, (16, 16, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"class{label}" / f"{number}.png")


def imported(source: Path, command: list[str]) -> list[str]:
    """Return the modules of ours that are loaded after a command."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS, *command],
        env=os.environ | {"PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[-1].split()


if __name__ == "__main__":
    main()
