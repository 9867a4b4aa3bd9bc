"""`ssil predict` in a fresh process: it must not import what only training and reporting need."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import tiny_classifiers
from ssil.cli import main

FORBIDDEN = (
    "ssil.benchmark",
    "ssil.reporting",
    "ssil.reproduction",
    "ssil.data.load",
    "ssil.learning.engine",
    "ssil.learning.trainer",
    "ssil.learning.evaluation",
    "ssil.classifier.update",
    "ssil.classifier.holdout",
    "ssil.classifier.feature_extraction",
    "ssil.classifier.edits",
    "ssil.classifier.publish_update",
    "ssil.classifier.estimator",
    "ssil.cli.learn",
    "lightning_fabric",
    "sympy",
    "scipy",
    "sklearn",
    "matplotlib",
    "plotly",
)

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
def test_predict_imports_no_training_code(method: str, images: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    small = ["--backbone", "resnet14", "--image-size", "8", "--grey", "--epochs", "1"]
    assert main(["learn", str(model), str(images), "--method", method, *small]) == 0
    command = [sys.executable, "-c", PREDICT, str(model), str(images / "ant/0.png")]
    prediction, modules = subprocess.check_output(command, text=True).splitlines()
    assert json.loads(prediction)["classes"][0]["class"] in {"ant", "bee"}
    loaded = json.loads(modules)
    assert [
        name for name in loaded if name in FORBIDDEN or name.startswith(tuple(f"{one}." for one in FORBIDDEN))
    ] == []
    assert [name for name in loaded if name.startswith("ssil.methods.")] == [f"ssil.methods.{method}"]
