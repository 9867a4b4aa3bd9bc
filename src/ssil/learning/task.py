"""How far a task is: all that must be kept to go on, and what those who watch are told."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.amp import GradScaler

from ssil.core.classes import ClassTable
from ssil.core.errors import UserError
from ssil.learning import processes
from ssil.learning.execution import ExecutionContext
from ssil.learning.snapshot import Scorer, Snapshot
from ssil.nn.network import Network


@dataclass
class Progress:
    """A task in progress: where it is, and all that must be kept to go on from there."""

    network: Network
    scorers: Mapping[str, Scorer]
    kept: dict[str, Snapshot] = field(default_factory=dict)
    """What the phases so far have kept as teachers."""
    parts: int = 1
    """Of the plan."""
    phase: int = 0
    epoch: int = 0
    step: int = 0
    images: int = 0
    losses: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    sums: dict[str, Tensor] = field(default_factory=dict)
    """Of the epoch's losses so far; with several processes, their mean is meant."""
    seconds: dict[str, float] = field(default_factory=dict)
    momentum: dict[str, Tensor] = field(default_factory=dict)
    """The optimiser's own buffers, by parameter name: they change in place with every step."""
    scaler: GradScaler | None = None
    """In fp16, by what losses are multiplied lest gradients vanish; each phase has its own."""

    def agree(self, context: ExecutionContext) -> None:
        """Let every process have the mean of all sums: each has summed over its share of the images."""
        if self.sums:
            means = processes.mean(context.fabric, torch.stack([*self.sums.values()]))
            self.sums = dict(zip(self.sums, means, strict=True))

    def check_finite(self, task: int) -> None:
        """Refuse to go on after a loss or a weight that is not a number (waits for the device)."""
        totals = {f"loss: {part}": value for part, value in self.sums.items()}
        modules = (self.network, *self.scorers.values())
        tensors = [tensor for module in modules for tensor in module.state_dict().values()]
        weights = [tensor.double().sum() for tensor in tensors if tensor.is_floating_point()]
        for name, total in (totals | {"weights: their sum": torch.stack(weights).sum()}).items():
            if not math.isfinite(total.item()):
                where = f"task {task}, epoch {self.epoch + 1}"
                raise UserError(f"{name} became {total.item()} in {where}; try a smaller --lr")


@dataclass(frozen=True)
class Pace:
    """How far a task is, for those who watch."""

    phase: str
    epoch: int
    epochs: int
    step: int
    steps: int
    images: int
    part: int = 0
    parts: int = 1
    """Of the plan: which one is at work, from 0, and how many there are."""

    @property
    def done(self) -> float:
        """How much of a task is done, all parts of the plan being alike.

        >>> Pace("main", epoch=1, epochs=2, step=2, steps=4, images=96, part=0, parts=2).done
        0.375
        """
        return (self.part + (self.epoch + self.step / self.steps) / self.epochs) / self.parts


Watch = Callable[[Progress, Pace], None]
"""Called after every step, and after every epoch with the next epoch's step 0."""


@dataclass(frozen=True)
class Task:
    """The class table once this task has arrived, and the indices of its training samples."""

    classes: ClassTable
    indices: Tensor

    @property
    def number(self) -> int:
        """Counted from 1."""
        return self.classes.task
