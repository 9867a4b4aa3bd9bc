"""`ssil check`."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ssil.cli import main
from ssil.learning.registry import RECIPES, recipes

METHOD = """
from ssil import LinearHead, Method, Mixed, Phase, cross_entropy, register


@register()
def mine(training, *, batch: int = 4) -> Method:
    '''Mine: plain fine-tuning.'''
    return Method(lambda c: (Phase("main", cross_entropy, Mixed(batch), training.schedule(c.task)),), LinearHead)


@register()
def broken(training):
    '''Broken: the loss has no terms.'''
    return Method(lambda c: (Phase("main", lambda step: {}, Mixed(4), training.schedule(c.task)),), LinearHead)
"""


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    """A file of methods; what it registers is forgotten, so that other tests find only the package's methods."""
    path, before = tmp_path / "my_file.py", recipes()
    path.write_text(METHOD)
    yield path
    RECIPES.clear()
    RECIPES.update(before)


def test_a_sound_method(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", f"{file}:mine", "--option", "batch=3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "        passed  options are typed and have defaults"
    assert lines[1].strip().startswith("Every option has a type and a default that fits it")
    assert "not applicable  replay batches keep their ratio" in lines


def test_a_broken_method(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", f"{file}:broken", "--json"]) == 3
    out, err = capsys.readouterr()
    results = [json.loads(line) for line in out.splitlines()]
    assert {"failed", "not run"} <= {result["outcome"] for result in results}
    assert err.startswith("refused: ")


def test_an_unknown_method(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "nobody.py:mine"]) == 2
    assert main(["check", "ssl"]) == 2
    assert "did you mean 'ssil'" in capsys.readouterr().err
