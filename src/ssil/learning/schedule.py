"""How long and how fast a method trains: the settings of a run, and the schedule of one task."""

from dataclasses import dataclass, replace
from math import cos, pi
from typing import Literal

from ssil.core.errors import UserError


@dataclass(frozen=True)
class Schedule:
    """SGD for some epochs; the learning rate changes before the (0-based) epoch equal to a milestone.

    >>> Schedule(epochs=8, lr=(0.1, 0.03, 0.01), milestones=(4, 7)).lr_at(4)
    0.03
    >>> Schedule(epochs=100, lr=(0.1, 0.01), milestones=(40,)).lr_at(39)
    0.1
    """

    epochs: int
    lr: tuple[float, ...]
    milestones: tuple[int, ...] = ()
    momentum: float = 0.9
    weight_decay: float = 1e-4

    def lr_at(self, epoch: int) -> float:
        """The learning rate of an epoch."""
        return self.lr[sum(epoch >= milestone for milestone in self.milestones)]

    def annealed(self) -> "Schedule":
        """The same epochs and first rate, falling along half a cosine, which would reach 0 after the last epoch.

        >>> Schedule(epochs=2, lr=(0.1,)).annealed().lr
        (0.1, 0.05)
        """
        lr = tuple(self.lr[0] * (1 + cos(pi * epoch / self.epochs)) / 2 for epoch in range(self.epochs))
        return replace(self, lr=lr, milestones=tuple(range(1, self.epochs)))


@dataclass(frozen=True)
class Training:
    """The training settings that all methods share; the defaults are SS-IL's (supplement, Table S1)."""

    epochs: int = 100
    later_epochs: int | None = None
    """Epochs of the tasks after the first, where they differ."""
    lr: float | tuple[float, ...] = 0.1
    """One value that decays at each milestone, or a value for each stretch between milestones."""
    milestones: tuple[int, ...] = (40, 80)
    decay: float = 0.1
    lr_by_task: bool = False
    """Divide the learning rate by the task's number, as the authors' code does for SS-IL and FT."""
    batch: int = 128
    momentum: float = 0.9
    weight_decay: float = 1e-4
    new_head_init: Literal["default", "zero"] = "default"
    """Rows of new classes: PyTorch's linear initialisation, or zero (what the authors' code amounts to)."""
    increments: int | None = None
    """T, the stream's number of increments; None where nobody knows how many tasks will come."""

    def __post_init__(self) -> None:
        if isinstance(self.lr, tuple) and len(self.lr) != len(self.milestones) + 1:
            raise UserError(
                f"lr: {list(self.lr)} has {len(self.lr)} values for {len(self.milestones)} milestones; "
                f"give one number, or one more value than milestones"
            )

    @property
    def replay(self) -> int:
        """N_M, the exemplars of a replay batch: 16, 32, 64 for T = 20, 10, 5 at N_D = 128; N_D / 4 for unknown T.

        >>> [Training(increments=T).replay for T in (20, 10, 5)]
        [16, 32, 64]
        """
        return max(1, round(2.5 * self.batch / self.increments) if self.increments else self.batch // 4)

    def schedule(self, task: int) -> Schedule:
        """The schedule of a task (counted from 1); milestones shrink with the epochs of later tasks."""
        epochs = self.epochs if task == 1 or self.later_epochs is None else self.later_epochs
        milestones = scale_milestones(self.milestones, self.epochs, epochs)
        lrs = self.lr if isinstance(self.lr, tuple) else _decayed(self.lr, self.decay, len(milestones))
        divisor = task if self.lr_by_task else 1
        return Schedule(epochs, tuple(lr / divisor for lr in lrs), milestones, self.momentum, self.weight_decay)

    def tuning(
        self, epochs: int, of: int, lr: float, milestones: tuple[int, ...] = (), wanted: int | None = None
    ) -> Schedule:
        """A shorter phase after the main one: so many `epochs` where the main phase has `of`; both shrink together.

        >>> Training(epochs=8).tuning(30, of=40, lr=0.01, milestones=(10, 20)).milestones
        (2, 4)
        """
        length = wanted or max(1, round(epochs * (self.later_epochs or self.epochs) / of))
        lrs = _decayed(lr, self.decay, len(milestones))
        return Schedule(length, lrs, scale_milestones(milestones, epochs, length), self.momentum, self.weight_decay)


def _decayed(lr: float, decay: float, times: int) -> tuple[float, ...]:
    return tuple(lr * decay**n for n in range(times + 1))


def scale_milestones(milestones: tuple[int, ...], epochs: int, wanted: int) -> tuple[int, ...]:
    """The milestones of a schedule of `epochs` stretched or shrunk to the `wanted` epochs; the first rate keeps one.

    >>> scale_milestones((40, 80), 100, 25), scale_milestones((40, 80), 100, 1)
    ((10, 20), (1, 1))
    """
    return tuple(max(1, round(milestone * wanted / epochs)) for milestone in milestones)
