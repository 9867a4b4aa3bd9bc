"""Runs that take no time: an easy data set in an .npz file, a small network, and what may be compared of two runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ssil.benchmark.checkpoint import Checkpoints
from ssil.benchmark.config import RunConfig, make_config
from ssil.benchmark.record import Record
from ssil.benchmark.runner import RunObserver
from ssil.learning.task import Pace
from ssil.nn.resnet import Backbone, ConvNorm, Norm, ResNet


def backbone(in_channels: int, norm: Norm, final_relu: bool = True) -> Backbone:
    """Two stages of one block."""
    return ResNet(ConvNorm(in_channels, 8, 3, 1, norm), (8, 16), 1, norm, final_relu)


def patterns(path: Path, train: Sequence[int], test: int = 4) -> Path:
    """A class for each number of training images: a coarse picture of its own, 8 x 8, and copies with some noise."""
    random = np.random.default_rng(0)
    templates = np.kron(random.integers(256, size=(len(train), 4, 4)), np.ones((1, 2, 2)))

    def copies(counts: Sequence[int]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        labels = np.repeat(np.arange(len(counts)), counts)
        noisy = templates[labels] + random.normal(0, 12, (len(labels), 8, 8))
        return noisy.clip(0, 255).astype(np.uint8), labels

    x_train, y_train = copies(train)
    x_test, y_test = copies([test] * len(train))
    np.savez(path, x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)
    return path


def config(dataset: Path, **settings: Any) -> RunConfig:
    """One epoch a task, 4 new images a batch, the network above, unless the settings say otherwise."""
    usual = {"backbone": f"{__file__}:backbone", "epochs": 1, "batch": 4, "threads": 1, "device": "cpu"}
    return make_config({"dataset": str(dataset)} | usual | settings)


def tensors(out: Path) -> dict[str, Tensor]:
    """Every tensor of a run's checkpoint."""
    _, parts = Checkpoints(out / "checkpoint").load()
    return {f"{part}/{name}": tensor for part, group in parts.items() for name, tensor in group.items()}


TIMES = {"seconds", "seconds_by_phase", "images_per_second", "peak_memory_mb"}


def timeless(record: Record) -> dict[str, Any]:
    """All of a record that two equal runs share: no times, no memory use, not where and when it ran."""
    return record.model_dump(
        mode="json", exclude={"provenance": True, "summary": {"seconds"}, "tasks": {"__all__": TIMES}}
    )


class Stopper(RunObserver):
    """Stops a run after so many steps."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def pace(self, task: int, pace: Pace) -> None:
        self.left -= 1

    def should_stop(self) -> bool:
        return self.left == 0
