"""Every block of code in the documents is valid: commands that the program knows, files that exist, Python that runs.

A shell block is carried out by bash, with programs in place of the real ones that only note how they were called. So
loops, variables and files that a block writes are the shell's, and nothing is trained. Blocks that are cheap are really
carried out, by test_documents.py.
"""

import ast
import importlib
import json
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image

from ssil import RunConfig, run
from ssil.cli import app

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOTED = ("ssil", "python", "pytest", "make", "torchrun", "srun")
"""Programs whose calls are checked."""
IGNORED = ("apt-get", "cp", "curl", "docker", "git", "mv", "pip", "python3", "ray", "schemathesis", "tensorboard")
"""Programs of others, and those that would change files."""
NOTE = (
    '#!/bin/bash\nfor word in "${0##*/}" "$@"; do printf "%s\\0" "$word"; done >> "$CALLS"; printf "\\n" >> "$CALLS"\n'
)


class Block(NamedTuple):
    """A block of code of a document."""

    document: str
    number: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.document}:{self.number}"


def found_blocks() -> list[Block]:
    return [
        Block(str(file.relative_to(ROOT)), number, language, text)
        for file in DOCUMENTS
        for number, (language, text) in enumerate(BLOCK.findall(file.read_text()), 1)
    ]


BLOCKS = found_blocks()


def of(language: str) -> list[Block]:
    return [block for block in BLOCKS if block.language == language]


@pytest.fixture(name="programs", scope="module")
def _programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with programs that note their arguments, and some that do nothing."""
    folder = tmp_path_factory.mktemp("programs")
    for name in NOTED:
        (folder / name).write_text(NOTE)
    for name in IGNORED:
        (folder / name).write_text("#!/bin/bash\n")
    for file in folder.iterdir():
        file.chmod(0o755)
    return folder


def calls(text: str, programs: Path, folder: Path) -> Iterator[list[str]]:
    """The calls of noted programs that a shell block makes, each as its words; an unknown program is an error."""
    log = folder / "calls"
    (folder / ".venv/bin").mkdir(parents=True)
    (folder / ".venv/bin/activate").touch()
    system = f"{programs}{os.pathsep}{Path(shutil.which('mkdir') or '').parent}"
    environment = {"PATH": system, "CALLS": str(log), "HOME": str(folder)}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    for line in log.read_text().split("\0\n") if log.exists() else ():
        if line:
            yield line.split("\0")


@pytest.mark.parametrize("block", of("sh"), ids=str)
def test_every_command_of_a_document_is_valid(block: Block, programs: Path, tmp_path: Path) -> None:
    for program, *words in calls(block.text, programs, tmp_path):
        if program in ("torchrun", "srun"):
            program, *words = words[words.index("ssil") :]
        if program == "ssil":
            app.parse_args(words, print_error=False, exit_on_error=False)
        elif program == "make":
            assert re.search(rf"^{words[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        else:
            check_script(words)


def check_script(words: list[str]) -> None:
    """The file exists, and knows the options."""
    file, *options = [word for word in words if word != "-s"]
    source = (ROOT / file).read_text()
    if file.startswith("benchmarks/"):
        assert not [option for option in options if option.startswith("--") and f'"{option}"' not in source]


def test_there_are_blocks_of_each_kind() -> None:
    counts = {language: len(of(language)) for language in ("sh", "python", "toml")}
    assert counts["sh"] > 60
    assert counts["python"] > 10
    assert {block.language for block in BLOCKS} <= {"sh", "python", "toml", "json", "text", ""}


@pytest.mark.parametrize("block", of("python"), ids=str)
def test_what_python_imports_exists(block: Block) -> None:
    for node in ast.walk(ast.parse(block.text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            module = importlib.import_module(node.module)
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []


@pytest.mark.parametrize("block", [*of("toml"), *of("json")], ids=str)
def test_files_are_well_formed(block: Block) -> None:
    if block.language == "toml":
        assert tomllib.loads(block.text)
    else:
        assert json.loads(block.text)


def test_the_readmes_settings_are_known() -> None:
    [block] = [block for block in of("toml") if block.document == "README.md"]
    assert RunConfig.model_validate(tomllib.loads(block.text)).options == {"temperature": 3.0}


def python_of(document: str) -> str:
    return "\n".join(block.text for block in of("python") if block.document == document)


@pytest.mark.slow
def test_records_are_read_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run(RunConfig(dataset="digits", method="ft", tasks=2, backbone="resnet8", epochs=1, out=Path("runs/ft")))
    exec(python_of("docs/records.md"), {})
    assert len(capsys.readouterr().out.splitlines()) >= 4


@pytest.mark.slow
def test_runs_are_tracked_as_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(python_of("docs/tracking.md"), {})
    assert [*Path("runs/second").rglob("events.out.tfevents.*")]


@pytest.mark.slow
def test_the_estimator_starts_from_weights_as_the_page_says() -> None:
    random = np.random.default_rng(0)
    images = [Image.fromarray(random.integers(256, size=(40, 40, 3), dtype=np.uint8)) for _ in range(8)]
    found = {"paths": images, "names": ["a", "b"] * 4}
    exec(python_of("docs/weights.md"), found)
    assert {*found["model"].classes_} == {"a", "b"}  # type: ignore[attr-defined]
