"""`ssil predict` in a fresh process: it must not import what only training and reporting need."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

import tiny_classifiers
from prediction_imports import forbidden
from ssil.cli import main

PREDICT = """
import json, sys
from ssil.cli import main
status = main(["predict", *sys.argv[1:], "--json"])
print(json.dumps(sorted(sys.modules)))
sys.exit(status)
"""


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_classifiers.folder(tmp_path_factory.mktemp("images"), ["ant", "bee"], 5)


@pytest.mark.parametrize("method", ["eeil", "icarl", pytest.param("il2m", marks=pytest.mark.slow)])
def test_predict_imports_neither_torch_nor_training_code(method: str, images: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    small = ["--backbone", "resnet14", "--image-size", "8", "--grey", "--epochs", "1"]
    assert main(["learn", str(model), str(images), "--method", method, *small]) == 0
    command = [sys.executable, "-c", PREDICT, str(model), str(images / "ant/0.png")]
    prediction, modules = subprocess.check_output(command, text=True).splitlines()
    assert json.loads(prediction)["classes"][0]["class"] in {"ant", "bee"}
    assert forbidden(json.loads(modules)) == []


@pytest.fixture(scope="module")
def oddly_named_model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model with a class whose name is a formula to a spreadsheet and a command to a terminal; and its images."""
    root = tmp_path_factory.mktemp("odd")
    images = tiny_classifiers.folder(root / "images", ["=1+\x1b[31m\n", "@bee"], 3)
    small = ["--backbone", "resnet14", "--image-size", "8", "--grey", "--epochs", "1"]
    assert main(["learn", str(root / "model"), str(images), *small]) == 0
    return root / "model", images


def test_an_image_on_standard_input(oddly_named_model: tuple[Path, Path]) -> None:
    model, images = oddly_named_model
    command = [sys.executable, "-m", "ssil", "predict", str(model), "-", "--top", "2"]
    with next(images.rglob("*.png")).open("rb") as file:
        answer = subprocess.check_output(command, stdin=file, text=True)
    assert answer.startswith("-: ")
    assert answer.count(" %") == 2


def test_unknown_options_are_still_refused(
    oddly_named_model: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(oddly_named_model[0]), "a.png", "--tpo", "2"]) == 2
    assert "--tpo" in capsys.readouterr().err


def test_names_are_printed_as_text_on_one_line(
    oddly_named_model: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    model, images = oddly_named_model
    assert main(["predict", str(model), str(images), "--top", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert all(line.isprintable() and "=1+\\x1b[31m" in line for line in lines)


def test_no_cell_is_a_formula(oddly_named_model: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    model, images = oddly_named_model
    assert main(["predict", str(model), str(images), "--top", "2", "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {row["class"] for row in rows} == {"'=1+\\x1b[31m\\n", "'@bee"}
