"""`ssil inspect` and `ssil history` of a model whose class is called like markup, or like a terminal's command."""

from pathlib import Path

import pytest

import tiny_classifiers
from ssil.cli import main


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("odd")
    images = tiny_classifiers.folder(root / "images", ["[red]ant", "bee\x1b[2J", "cat\u202e"], 3)
    small = ["--backbone", "resnet14", "--image-size", "8", "--grey", "--epochs", "1"]
    assert main(["learn", str(root / "[model]"), str(images), *small]) == 0
    assert main(["rename", str(root / "[model]"), "[red]ant", "[/b]"]) == 0
    return root / "[model]"


def test_names_are_printed_as_text(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["inspect", str(model)]) == 0
    assert main(["history", str(model)]) == 0
    printed = capsys.readouterr().out
    assert all(line.isprintable() for line in printed.splitlines())
    for text in ("[model]", "[/b]", "[red]ant is now [/b]", "bee\\x1b[2J", "cat\\u202e"):
        assert text in printed


def test_an_error_with_a_name_is_one_line(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rename", str(model), "no\x1b\nne", "x"]) == 2
    assert main(["inspect", "no\x1b\nne"]) == 2
    printed = capsys.readouterr().err
    assert len(printed.splitlines()) == 2
    assert all(line.isprintable() for line in printed.splitlines())
