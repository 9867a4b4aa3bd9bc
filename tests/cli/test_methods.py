"""`ssil methods`."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from ssil.cli import main
from ssil.learning.method_facts import described
from ssil.learning.registry import recipes


def _objects(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    assert main([*arguments, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_methods(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["methods"]) == 0
    shown = capsys.readouterr().out
    assert all(recipe.summary in shown for recipe in recipes().values())
    assert [entry["name"] for entry in _objects(["methods"], capsys)] == list(recipes())


def test_a_method(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["methods", "ssil"]) == 0
    shown = capsys.readouterr().out
    assert "softmax" in shown
    assert "separate | joint" in shown
    assert "min_group" in shown
    assert "A departure from the paper. A softmax over a single class has no" in shown
    (entry,) = _objects(["methods", "ssil"], capsys)
    assert entry["options"]["temperature"] == {"type": "float", "default": 2.0}
    assert [entry["profiles"][name]["kd_tau_sq"] for name in ("paper", "official", "quick")] == [False, True, False]
    assert entry["profiles"]["quick"]["epochs"] < entry["profiles"]["paper"]["epochs"]


@pytest.mark.parametrize("name", recipes())
def test_every_option_of_a_method_is_described(name: str) -> None:
    """In its own docstring, or in that of the method of which it is a setting."""
    recipe = recipes()[name]
    text, meanings = described(inspect.getdoc(recipe.build) or "")
    assert list(meanings) == list(recipe.options) or "options are among those of `ssil`" in text
    assert all(meanings.values())


def test_a_method_with_an_option_that_must_be_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "deep.py"
    file.write_text("def deep(training, *, depth: int):\n    'Deep.'\n")
    assert main(["methods", f"{file}:deep"]) == 0
    described = capsys.readouterr().out
    assert "(required)" in described
    assert "Needs: depends on its options." in described
    assert main(["run", "--dataset", "digits", "--method", f"{file}:deep"]) == 2
    assert "needs 'depth'; give --option depth=VALUE" in capsys.readouterr().err
