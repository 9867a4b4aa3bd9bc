"""A task to learn, and the progress of learning it: all that must be saved to continue, and reports for observers."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.amp import GradScaler

from ssil.core.classes import ClassTable
from ssil.core.errors import DivergedError
from ssil.learning import distributed
from ssil.learning.execution import ExecutionContext
from ssil.learning.snapshot import Scorer, Snapshot
from ssil.nn.network import Network


@dataclass(frozen=True)
class Task:
    """The class table after the task, and the indices of the task's training samples."""

    classes: ClassTable
    indices: Tensor

    @property
    def number(self) -> int:
        """The task's number, counted from 1."""
        return self.classes.task


@dataclass
class Progress:
    """The state of a task in progress. A checkpoint holds all of it, and training continues from it bit for bit."""

    network: Network
    scorers: Mapping[str, Scorer]
    kept: dict[str, Snapshot] = field(default_factory=dict)
    """The snapshots that finished phases have kept as teachers, by name."""
    parts: int = 1
    """The number of phases and stages in the task's plan."""
    phase: int = 0
    """The current phase or stage, counted from 0."""
    epoch: int = 0
    step: int = 0
    images: int = 0
    """Training images processed in this task, each as often as it was in a batch."""
    gradient_steps: int | None = 0
    """Optimiser steps on images in this task; None where a checkpoint of an earlier version did not count them."""
    losses: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    """By phase and loss term: the mean over each finished epoch."""
    sums: dict[str, Tensor] = field(default_factory=dict)
    """The sum over the steps of the current epoch of each loss term, in this process."""
    seconds: dict[str, float] = field(default_factory=dict)
    """By phase: the time spent in training."""
    momentum: dict[str, Tensor] = field(default_factory=dict)
    """The optimiser's state, such as momentum, by parameter name; every step changes it in place."""
    scaler: GradScaler | None = None
    """In fp16, the scale of the loss that keeps small gradients from vanishing; each phase has its own."""

    def count_step(self, images: int) -> None:
        """Count a gradient step on some images."""
        self.images += images
        if self.gradient_steps is not None:
            self.gradient_steps += 1

    def average_sums(self, context: ExecutionContext) -> None:
        """Replace the loss sums of every process by their mean over all processes."""
        if self.sums:
            means = distributed.mean(context.fabric, torch.stack([*self.sums.values()]))
            self.sums = dict(zip(self.sums, means, strict=True))

    def check_finite(self, task: int) -> None:
        """Raise DivergedError if a loss or a weight is infinite or not a number. Waits for the device."""
        totals = {f"loss: {part}": value for part, value in self.sums.items()}
        for means in self.losses.values():
            totals |= {f"loss: {part}": torch.tensor(values).sum() for part, values in means.items()}
        modules = (self.network, *self.scorers.values())
        tensors = [tensor for module in modules for tensor in module.state_dict().values()]
        weights = [tensor.double().sum() for tensor in tensors if tensor.is_floating_point()]
        for name, total in (totals | {"weights: their sum": torch.stack(weights).sum()}).items():
            if not math.isfinite(total.item()):
                where = f"task {task}, epoch {self.epoch + 1}"
                raise DivergedError(f"{name} became {total.item()} in {where}; try a smaller --lr")


@dataclass(frozen=True)
class ProgressReport:
    """How far a task is, for observers."""

    phase: str
    epoch: int
    epochs: int
    step: int
    steps: int
    images: int
    part: int = 0
    """The current phase or stage of the plan, counted from 0."""
    parts: int = 1
    """The number of phases and stages in the plan."""

    @property
    def done(self) -> float:
        """The finished share of the task, if all parts of its plan take equally long.

        >>> ProgressReport("main", epoch=1, epochs=2, step=2, steps=4, images=96, part=0, parts=2).done
        0.375
        """
        return (self.part + (self.epoch + self.step / self.steps) / self.epochs) / self.parts


Observer = Callable[[Progress, ProgressReport], None]
"""Called after every step, and after every epoch with step 0 of the next epoch."""


def ignore_progress(progress: Progress, report: ProgressReport) -> None:
    """Do nothing: an observer for callers that need none."""
