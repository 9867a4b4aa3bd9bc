"""The documents' examples do what they say: a block below `<!-- test: NAME -->` is taken word for word."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ssil.cli import main

ROOT = Path(__file__).parents[2]


def block(document: str, name: str) -> str:
    found = re.search(rf"<!-- test: {re.escape(name)} -->\n```\w+\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)
    assert found, f"{document} has no block {name!r}"
    return found[1]


def test_the_glossary_names_what_exists() -> None:
    """Each file, and each name in parentheses behind it."""
    text = (ROOT / "docs/glossary.md").read_text()
    found = re.findall(r"`((?!src)\w+/[\w/.]*)`(?: \(([^)]*)\))?", text)
    assert len(found) > 50
    for path, names in found:
        source = ROOT / "src/ssil" / path
        assert source.exists(), path
        for name in re.findall(r"`(?:\w+\.)?(\w+)`", names):
            assert re.search(rf"\b(def|class) {name}\b|^ *{name}: ", source.read_text(), re.MULTILINE), (
                f"{path}: {name}"
            )


@pytest.mark.slow
def test_the_readmes_first_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for command in [line for name in ("commands", "chain") for line in block("README.md", name).splitlines()]:
        assert main(shlex.split(command)[1:]) == 0
    exec(block("README.md", "python"), {})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("document", "name", "said"),
    [
        ("README.md", "classifier", ["signs, version 3 of 1, 2, 3: 15 classes", "W latin capital letter w"]),
        ("docs/freezing.md", "commands", ["mine, version 1 of 1: 10 classes"]),
        ("docs/closed-form.md", "commands", ["runs/closed/ranpac", "runs/closed/slda"]),
        (
            "docs/weights.md",
            "commands",
            ["(x - 127) / 128", "more, version 1 of 1: 10 classes, eeil on efficientnet_lite0"],
        ),
    ],
)
def test_a_classifier_of_your_own(document: str, name: str, said: list[str], tmp_path: Path) -> None:
    """By a shell, as a reader would paste it."""
    shell = ["bash", "-euo", "pipefail", "-c", block(document, name)]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(shell, cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [words for words in said if words not in done.stdout] == []


@pytest.mark.slow
def test_the_readmes_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("configs").symlink_to(ROOT / "configs")
    for command in block("README.md", "compare").splitlines():
        assert main(shlex.split(command)[1:]) == 0
    assert Path("report/index.html").stat().st_size > 1_000_000


@pytest.mark.slow
def test_a_new_method_as_contributing_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for file in ("my_method.py", "my_scorer.py", "my_net.py"):
        Path(file).write_text(block("CONTRIBUTING.md", file))
    for command in (
        line
        for name in ("commands", "check", "scorer", "backbone")
        for line in block("CONTRIBUTING.md", name).splitlines()
    ):
        assert main(shlex.split(command)[1:]) == 0
    shown = capsys.readouterr().out
    assert "weighted" in shown
    assert "er" in shown
    assert "newest_scaled" in shown
