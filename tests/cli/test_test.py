"""`ssil test`, as a person types it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import tiny_classifiers
from prediction_imports import forbidden
from ssil.cli import main

SMALL = ["--backbone", "resnet14", "--image-size", "8", "--grey", "--epochs", "6"]
TEST = """
import json, sys
from ssil.cli import main
status = main(["test", *sys.argv[1:], "--json"])
print(json.dumps(sorted(sys.modules)))
sys.exit(status)
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("model")
    assert main(["learn", str(root / "m"), str(tiny_classifiers.folder(root / "i", ["ant", "[b]ee"])), *SMALL]) == 0
    return root / "m"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("folder")
    for image, name in tiny_classifiers.labelled_images(["ant", "[b]ee", "cat"], 5, first=20):
        path = root / name / Path(image.name).name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(image.read())
    return root


def test_tables_of_eighty_columns(
    model: Path, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    capsys.readouterr()
    assert main(["test", str(model), str(folder)]) == 0
    printed = capsys.readouterr().out
    assert "all classes" in printed
    assert "[b]ee" in printed
    assert "5 images are of classes that the model does not know" in printed
    assert max(map(len, printed.splitlines()[1:])) <= 80


def test_json_and_page(model: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["test", str(model), str(folder), "--json", "--html", str(tmp_path / "page.html")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["images"], found["other_images"], found["other_classes"]) == (10, 5, ["cat"])
    assert found["accuracy"] == 10 * found["correct"]
    assert found["interval"][0] < found["accuracy"] <= found["interval"][1] + 1e-9
    page = (tmp_path / "page.html").read_text()
    assert len(page) < 100_000
    assert "images are recognised" in page
    assert "[b]ee" in page


def test_a_test_imports_neither_torch_nor_training_code(model: Path, folder: Path) -> None:
    command = [sys.executable, "-c", TEST, str(model), str(folder)]
    result, modules = subprocess.check_output(command, text=True).splitlines()
    assert json.loads(result)["images"] == 10
    assert forbidden(json.loads(modules)) == []


def test_bad_input_is_one_line(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["test", str(model), str(tmp_path / "none")]) == 2
    assert main(["test", str(tmp_path / "none"), str(tmp_path)]) == 2
    assert main(["test", str(model), str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 3


def test_what_is_not_listed_has_a_command(
    model: Path, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["test", str(model), str(folder)]) == 0
    assert "to see all of them" not in capsys.readouterr().out
    monkeypatch.setattr("ssil.cli.test.MAX_CLASSES", 1)
    assert main(["test", str(model), str(folder)]) == 0
    printed = capsys.readouterr().out
    assert "(1 more accurate class is not listed)" in printed
    assert f"to see all of them: ssil test {model} {folder} --json" in printed
