"""Features in an .npz file, in place of images."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tiny_runs
from ssil.benchmark.run_setup import set_up
from ssil.benchmark.runner import run
from ssil.core.errors import UserError
from ssil.data.data_settings import DataSettings
from ssil.data.load import load


def written(path: Path, change: Any = None, kind: str = "float32") -> Path:
    """Six classes around centres of their own, in 12 dimensions."""
    random = np.random.default_rng(0)
    centres = random.normal(size=(6, 12))
    parts = {"train": np.repeat(np.arange(6), 8), "test": np.repeat(np.arange(6), 4)}
    x = {name: (centres[y] + 0.1 * random.normal(size=(len(y), 12))).astype(kind) for name, y in parts.items()}
    if change:
        change(x)
    np.savez(path, x_train=x["train"], y_train=parts["train"], x_test=x["test"], y_test=parts["test"])
    return path


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_features_are_what_the_network_gets(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path / "features.npz", kind=kind)
    found = load(DataSettings(dataset=str(path)))
    pixels, expected = found.train.images.fetch(torch.arange(48)), torch.from_numpy(np.load(path)["x_train"]).float()
    for dtype in (torch.float32, torch.float64):
        assert torch.equal(found.transform.test(pixels, dtype), expected.to(dtype))
        draws = found.transform.draw(48, torch.Generator())
        assert torch.equal(found.transform.train(pixels, draws, dtype), expected.to(dtype))


@pytest.mark.parametrize("method", ["ssil", "slda", "podnet", "icarl"])
@pytest.mark.parametrize("precision", ["32-true", "64-true"])
def test_methods_learn_from_features(tmp_path: Path, method: str, precision: str) -> None:
    path = written(tmp_path / "features.npz")
    settings = {"backbone": "identity", "epochs": 30, "lr": 0.3, "memory": 12, "precision": precision, "batch": 8}
    record = run(tiny_runs.config(path, **settings, tasks=3, method=method))
    assert record.tasks[-1].top1 > 60
    assert record.tasks[-1].exemplar_bytes == 4 * 12 * sum(record.tasks[-1].memory_counts)


def test_a_network_of_ones_own_gets_vectors(tmp_path: Path) -> None:
    file = tmp_path / "layers.py"
    file.write_text(
        "from torch import nn\n\n"
        "def mlp(in_channels):\n    return nn.Sequential(nn.Linear(in_channels, 16), nn.ReLU())\n"
    )
    path = written(tmp_path / "features.npz")
    record = run(tiny_runs.config(path, backbone=f"{file}:mlp", tasks=2, epochs=5, method="ssil", memory=12, lr=0.1))
    assert record.tasks[-1].parameters == 16 * 12 + 16 + 6 * 16 + 6


def infinite(x: dict[str, np.ndarray]) -> None:
    x["train"][5, 3] = np.inf


def cubes(x: dict[str, np.ndarray]) -> None:
    x["train"] = x["train"].reshape(48, 3, 4)


def narrow(x: dict[str, np.ndarray]) -> None:
    x["test"] = x["test"][:, :4]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (infinite, r"dataset: .*: x_train has a feature that is not finite in row 5; mend or remove the row"),
        (cubes, r"x_train is float32 \(48, 3, 4\); images must be uint8, .*, and features floating-point numbers"),
        (narrow, r"make them the same size"),
    ],
)
def test_bad_arrays(tmp_path: Path, change: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load(DataSettings(dataset=str(written(tmp_path / "features.npz", change))))


def test_settings_that_are_for_images(tmp_path: Path) -> None:
    path = written(tmp_path / "features.npz")
    with pytest.raises(UserError, match=r"backbone: resnet14 is for images, and features has features; give identity"):
        set_up(tiny_runs.config(path, backbone="resnet14", tasks=2))
    with pytest.raises(UserError, match=r"augment: .* has features, not images; leave out --augment and --brightness"):
        set_up(tiny_runs.config(path, backbone="identity", tasks=2, brightness=0.5))
