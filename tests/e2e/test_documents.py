"""The documents' examples do what they say: a block below `<!-- test: NAME -->` is taken word for word."""

import re
import shlex
from pathlib import Path

import pytest

from ssil.cli import main

ROOT = Path(__file__).parents[2]


def block(document: str, name: str) -> str:
    found = re.search(rf"<!-- test: {re.escape(name)} -->\n```\w+\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)
    assert found, f"{document} has no block {name!r}"
    return found[1]


@pytest.mark.slow
def test_the_readmes_first_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for command in [line for name in ("commands", "chain") for line in block("README.md", name).splitlines()]:
        assert main(shlex.split(command)[1:]) == 0
    exec(block("README.md", "python"), {})


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
    for file in ("my_method.py", "my_scorer.py"):
        Path(file).write_text(block("CONTRIBUTING.md", file))
    for command in block("CONTRIBUTING.md", "commands").splitlines():
        assert main(shlex.split(command)[1:]) == 0
    shown = capsys.readouterr().out
    assert "weighted" in shown
    assert "ft" in shown
    assert "tempered" in shown
