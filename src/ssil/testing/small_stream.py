"""A data set, a network and run settings so small that a whole stream is learnt in a second."""

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
from ssil.learning.task import ProgressReport
from ssil.nn.resnet import Backbone, ConvNorm, Norm, ResNet

IMAGES = (6, 5, 1, 4, 6, 3)
"""Training images of each class; one class has a single image."""

SETTINGS: dict[str, Any] = {
    "task_sizes": (3, 1, 2),
    "class_order": 0,
    "memory": 9,
    "epochs": 2,
    "later_epochs": 2,
    "lr": 0.1,
    "milestones": (1,),
    "decay": 0.1,
    "momentum": 0.9,
    "weight_decay": 1e-4,
}
"""Uneven tasks, one of them of a single class (not the one that has one image); the same training for all methods."""

COSTS = {"seconds", "seconds_by_phase", "images_per_second", "peak_memory_mb"}
"""The fields of a task's record that differ between two equal runs."""


def backbone(in_channels: int, norm: Norm, final_relu: bool = True) -> Backbone:
    """Return a residual network of two stages with one block each."""
    return ResNet(ConvNorm(in_channels, 8, 3, 1, norm), (8, 16), 1, norm, final_relu)


def patterns(path: Path, train: Sequence[int], test: int = 4) -> Path:
    """Write an easy data set to the .npz file `path`: each class is a coarse 8 x 8 pattern of its own, with noise.

    Args:
        path: The file to write.
        train: The number of training images of each class.
        test: The number of test images of every class.
    """
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
    """Return a run's configuration: `backbone`, one epoch per task, 4 new images per batch, then `settings`."""
    usual = {"backbone": f"{__file__}:backbone", "epochs": 1, "batch": 4, "threads": 1, "device": "cpu"}
    return make_config({"dataset": str(dataset)} | usual | settings)


def tensors(out: Path) -> dict[str, Tensor]:
    """Return every tensor of the checkpoint in the run directory `out`, by part and name."""
    _, parts = Checkpoints(out / "checkpoint").load()
    return {f"{part}/{name}": tensor for part, group in parts.items() for name, tensor in group.items()}


def without_costs(record: Record) -> dict[str, Any]:
    """Return what two equal runs have in common: a record without times, memory use and provenance."""
    return record.model_dump(
        mode="json",
        exclude={"provenance": True, "summary": {"seconds", "training_seconds"}, "tasks": {"__all__": COSTS}},
    )


class StopAfter(RunObserver):
    """Stops a run after a number of steps, as Ctrl-C does."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def progress(self, task: int, report: ProgressReport) -> None:
        """Count a step."""
        self.left -= 1

    def should_stop(self) -> bool:
        """Return whether the last step has been counted."""
        return self.left == 0


class StopAfterTask(RunObserver):
    """Stops a run after each task."""

    stop = False

    def learnt(self, record: Record) -> None:
        """Note that a task is done."""
        self.stop = True

    def should_stop(self) -> bool:
        """Return whether a task has been learnt."""
        return self.stop
