"""First weights from directories of models and runs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import tiny_runs
from ssil.benchmark.runner import run
from ssil.classifier.publish_update import publish_update
from ssil.core.errors import UserError
from ssil.core.files import checksum
from ssil.core.network_input import NetworkInput, usual_input
from ssil.nn.first_weights import decided_settings, find_first_weights
from ssil.nn.own_models import find_own_model
from tiny_classifiers import folder, settings

CODE = f"{Path(tiny_runs.__file__)}:backbone"
GIVEN: dict[str, Any] = settings(epochs=1).model_dump()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    publish_update(tmp_path / "model", str(folder(tmp_path / "images", ["ant", "bee"], 6)), GIVEN)
    return tmp_path / "model"


def test_a_model_directory(model: Path, tmp_path: Path) -> None:
    found = find_first_weights(str(model))
    assert found.backbone == CODE
    assert found.input == usual_input(8, grey=True)
    assert found.sha256 == checksum((model / "versions/0001/weights.safetensors").read_bytes(), 64)
    given = {"backbone": CODE, "freeze": True, "epochs": 1, "memory": 40}
    again = publish_update(tmp_path / "again", str(tmp_path / "images"), given, init=str(model)).version.classifier
    assert (again.settings.image_size, again.settings.grey, again.settings.input) == (8, True, found.input)
    for name, tensor in again.snapshot.network.backbone.state_dict().items():
        assert torch.equal(tensor, found.tensors()[f"network/backbone.{name}"])
    chained = find_own_model(str(tmp_path / "again"))
    assert chained is not None
    assert chained.input == found.input


def test_code_of_a_model_is_not_trusted(model: Path) -> None:
    found = find_first_weights(str(model))
    with pytest.raises(UserError, match=r"names code of its own; if you trust it, say --backbone .*:backbone"):
        decided_settings(found, {})
    assert decided_settings(found, {"backbone": CODE})["backbone"] == CODE


def test_a_run_directory(tmp_path: Path) -> None:
    data = tiny_runs.patterns(tmp_path / "patterns.npz", [5] * 4)
    run(tiny_runs.config(data, tasks=2, memory=4, method="ft", out=tmp_path / "run"))
    found = find_first_weights(str(tmp_path / "run"))
    assert found.input is None
    assert str(found.backbone).endswith(":backbone")
    tensors = tiny_runs.tensors(tmp_path / "run")
    assert all(torch.equal(tensor, tensors[f"snapshot/{name}"]) for name, tensor in found.tensors().items())
    config = tiny_runs.config(data, tasks=2, memory=4, method="ft", init=str(tmp_path / "run"), freeze=True)
    run(config.model_copy(update={"out": tmp_path / "frozen"}))
    with pytest.raises(
        UserError, match="frozen trained a head on frozen features; give the weights that it began with"
    ):
        find_first_weights(str(tmp_path / "frozen"))


def test_the_input_of_a_run_is_kept(tmp_path: Path) -> None:
    needed = NetworkInput(size=32, interpolation="bicubic")
    (tmp_path / "checkpoint").mkdir()
    config = {"backbone": "resnet14", "input": needed.model_dump(mode="json")}
    (tmp_path / "record.json").write_text(json.dumps({"config": config}))
    (tmp_path / "checkpoint/state.json").write_text(json.dumps({"files": {"snapshot": "snapshot-0.safetensors"}}))
    found = find_own_model(str(tmp_path))
    assert found is not None
    assert found.input == needed


def remove_weights(model: Path) -> None:
    (model / "versions/0001/weights.safetensors").unlink()


def damage_weights(model: Path) -> None:
    (model / "versions/0001/weights.safetensors").write_bytes(b"0")


def damage_model(model: Path) -> None:
    path = model / "versions/0001/model.json"
    path.write_text(path.read_text().replace('"image_size"', '"size"'))


def remove_model(model: Path) -> None:
    (model / "versions/0001/model.json").unlink()


def no_settings(model: Path) -> None:
    (model / "versions/0001/model.json").write_text('{"settings": [], "weights": "0"}')


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (remove_weights, r"weights\.safetensors can't be read \(No such file or directory\); restore it"),
        (damage_weights, r"weights\.safetensors is damaged \(its checksum differs\); restore it"),
        (damage_model, r"model\.json is damaged \(its checksum differs\); restore it"),
        (remove_model, r"model\.json can't be read"),
        (no_settings, "is not what it should be"),
    ],
)
def test_damaged_files_are_named(model: Path, damage: Callable[[Path], None], message: str) -> None:
    damage(model)
    with pytest.raises(UserError, match=f"^init: .*{message}"):
        find_first_weights(str(model)).tensors()


def test_other_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds neither a model nor a run; give the directory of one, or a file"):
        find_first_weights(str(tmp_path))
    (tmp_path / "record.json").write_text('{"config": {"backbone": "resnet14"}}')
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint/state.json").write_text('{"files": {}}')
    with pytest.raises(UserError, match="has finished no task"):
        find_first_weights(str(tmp_path))
