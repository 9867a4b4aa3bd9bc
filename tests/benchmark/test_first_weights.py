"""`--init`: a run whose first weights come from a file."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import tiny_runs
from followed_methods import IMAGES, SETTINGS
from ssil.benchmark.config import RunConfig
from ssil.benchmark.record import Record, read_record
from ssil.benchmark.run_setup import set_up, settings_without_data
from ssil.benchmark.runner import run
from ssil.core.errors import UserError
from ssil.core.tensor_files import write_tensors
from ssil.learning.model_state import initial_network
from ssil.nn.network import Network
from ssil.nn.weights import named_weights
from tiny_runs import preprocessed


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("init") / "patterns.npz", IMAGES)


def weights(seed: int, channels: int = 1) -> dict[str, Tensor]:
    """Of `tiny_runs.backbone`, with torchvision's names."""
    random = torch.Generator().manual_seed(seed)
    shapes = {"conv1": (8, channels, 3, 3), "layer1.0.conv1": (8, 8, 3, 3), "layer1.0.conv2": (8, 8, 3, 3)}
    shapes |= {
        "layer2.0.conv1": (16, 8, 3, 3),
        "layer2.0.conv2": (16, 16, 3, 3),
        "layer2.0.downsample.0": (16, 8, 1, 1),
    }
    tensors = {f"{name}.weight": 0.3 * torch.randn(shape, generator=random) for name, shape in shapes.items()}
    for name, (width, *_) in shapes.items():
        norm = name.replace("conv", "bn").replace("downsample.0", "downsample.1")
        for part in ("weight", "bias", "running_mean", "running_var"):
            tensors[f"{norm}.{part}"] = 0.5 + torch.rand(width, generator=random)
    return tensors


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_tensors(tmp_path / "weights.safetensors", weights(1))
    return tmp_path / "weights.safetensors"


def first(dataset: Path, task: int = 1, **settings: Any) -> Network:
    """The network that a task begins with if it begins anew."""
    plan = set_up(tiny_runs.config(dataset, **SETTINGS | settings))
    return initial_network(plan.configured.method, plan.stream.tasks[task - 1].classes, plan.context)


@pytest.mark.parametrize(("method", "task"), [("ssil", 1), ("joint", 1), ("joint", 3), ("lucir", 1), ("podnet", 1)])
def test_a_backbone_begins_as_the_file_says_and_the_head_as_ever(
    dataset: Path, file: Path, method: str, task: int
) -> None:
    network, without = first(dataset, task, method=method, init=str(file)), first(dataset, task, method=method)
    given, found = weights(1), network.backbone.state_dict()
    for ours, theirs in (
        ("stem.conv.weight", "conv1.weight"),
        ("stages.1.0.second.norm.running_var", "layer2.0.bn2.running_var"),
    ):
        assert torch.equal(found[ours], given[theirs])
        assert not torch.equal(found[ours], without.backbone.state_dict()[ours])
    assert torch.equal(network.head.weight, without.head.weight)


@pytest.mark.parametrize("method", ["ft", "joint", "lucir"])
def test_a_run_whose_steps_are_nothing_ends_with_the_files_weights(
    dataset: Path, file: Path, tmp_path: Path, method: str
) -> None:
    """Also where each task begins anew."""
    run(tiny_runs.config(dataset, **SETTINGS | {"lr": 1e-30}, method=method, init=str(file), out=tmp_path / "run"))
    kernel = tiny_runs.tensors(tmp_path / "run")["snapshot/network/backbone.stages.1.0.shortcut.conv.weight"]
    assert torch.equal(kernel, weights(1)["layer2.0.downsample.0.weight"])


def done(dataset: Path, out: Path, init: Path | None, **more: Any) -> Record:
    return run(tiny_runs.config(dataset, **SETTINGS, method="ft", out=out, init=init and str(init)), **more)


def test_a_moved_file_is_the_same_and_another_content_is_not(dataset: Path, file: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        done(dataset, out, file, observer=tiny_runs.Stopper(5))
    moved = file.rename(tmp_path / "moved.safetensors")
    resumed = done(dataset, out, moved)
    assert tiny_runs.timeless(resumed) == tiny_runs.timeless(done(dataset, tmp_path / "whole", moved))
    assert "init" not in resumed.config
    assert resumed.provenance["init"] == str(file)
    write_tensors(moved, weights(2))
    with pytest.raises(UserError, match=r"was begun with another content of the init's file; give another --out"):
        done(dataset, out, moved)
    with pytest.raises(UserError, match=r"init_sha256: '.* there, None here"):
        done(dataset, out, None)
    assert done(dataset, tmp_path / "other", moved).tasks[0].loss != resumed.tasks[0].loss


def test_methods_that_share_the_training_and_branches_start_there_too(
    dataset: Path, file: Path, tmp_path: Path
) -> None:
    settings = {**SETTINGS, "method": "ft,il2m", "branch": "ce", "init": str(file)}
    run(tiny_runs.config(dataset, **settings, out=tmp_path / "run"))
    configs = [read_record(tmp_path / "run" / name).config for name in ("", "il2m", "ce")]
    assert len({config["init_sha256"] for config in configs}) == 1
    assert settings_without_data(tiny_runs.config(dataset, **settings))[1]["init_sha256"] == configs[0]["init_sha256"]


@pytest.mark.parametrize(
    ("tensors", "settings", "message"),
    [
        (weights(1, channels=3), {}, r"weights.safetensors is 8x3x3x3, the backbone's is 8x1x3x3; the weights are for"),
        (weights(1), {"norm": "group"}, "is of a network with batch norm; leave out --norm group"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    dataset: Path, tmp_path: Path, tensors: dict[str, Tensor], settings: dict[str, Any], message: str
) -> None:
    write_tensors(file := tmp_path / "weights.safetensors", tensors)
    with pytest.raises(UserError, match=message):
        run(tiny_runs.config(dataset, **SETTINGS, **settings, init=str(file), out=tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_a_run_begins_where_another_ended(dataset: Path, tmp_path: Path) -> None:
    """With the backbone of its checkpoint."""
    run(tiny_runs.config(dataset, **SETTINGS, method="ft", out=tmp_path / "run"))
    (snapshot,) = (tmp_path / "run" / "checkpoint").glob("snapshot-*.safetensors")
    shutil.copy(snapshot, tmp_path / "kept.safetensors")
    network = first(dataset, init=str(tmp_path / "kept.safetensors"))
    trained = tiny_runs.tensors(tmp_path / "run")
    for name, tensor in network.backbone.state_dict().items():
        assert torch.equal(tensor, trained[f"snapshot/network/backbone.{name}"])


@pytest.fixture
def colours(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    parts = {"x_train": random.integers(256, size=(16, 8, 8, 3)), "x_test": random.integers(256, size=(8, 8, 8, 3))}
    labels = {"y_train": np.arange(16) % 4, "y_test": np.arange(8) % 4}
    arrays: dict[str, Any] = {name: part.astype(np.uint8) for name, part in parts.items()} | labels
    np.savez(tmp_path / "colours.npz", **arrays)
    return tmp_path / "colours.npz"


NAMED: dict[str, Any] = {
    "init": "efficientnet_lite0",
    "freeze": True,
    "tasks": 2,
    "memory": 4,
    "epochs": 1,
    "batch": 4,
    "threads": 1,
}


def test_named_weights_decide_backbone_and_input_and_the_record_says_so(colours: Path, tmp_path: Path) -> None:
    config = RunConfig(dataset=str(colours), out=tmp_path / "run", **NAMED)
    needed = named_weights("efficientnet_lite0").input
    record = run(config)
    assert record.config["backbone"] == "efficientnet_lite0"
    assert record.config["init_sha256"] == named_weights("efficientnet_lite0").sha256
    assert record.config["input"] == needed.model_dump(mode="json")
    _, known = settings_without_data(config)
    assert known.items() <= record.config.items()
    assert run(config).summary == record.summary
    plan = set_up(config)
    assert plan.context.samples.images.shape[2] == 1280


def test_named_weights_see_pixels_resized(colours: Path) -> None:
    plan = set_up(RunConfig(dataset=str(colours), **NAMED | {"freeze": False}))
    assert preprocessed(plan.context, torch.arange(2)).shape == (2, 3, 224, 224)


def test_another_backbone_than_that_of_named_weights_is_refused(colours: Path) -> None:
    config = RunConfig(dataset=str(colours), backbone="resnet14", **NAMED)
    with pytest.raises(UserError, match="backbone: the weights efficientnet_lite0 are not of resnet14"):
        set_up(config)
    with pytest.raises(UserError, match="backbone: the weights efficientnet_lite0 are not of resnet14"):
        settings_without_data(config)
