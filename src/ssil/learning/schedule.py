"""Epochs and learning rates: the training settings of a run, the schedule of one task, and scaling of both."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import cos, pi
from typing import Any, Literal

from ssil.core.errors import UserError

OptimizerName = Literal["sgd", "adamw"]


@dataclass(frozen=True)
class Schedule:
    """SGD, or AdamW, for some epochs: `lr` has one value before the first milestone, and one from each milestone on.

    Epochs are counted from 0: a milestone 4 changes the learning rate before the fifth epoch.

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
    optimizer: OptimizerName = "sgd"

    def lr_at(self, epoch: int) -> float:
        """Return the learning rate of an epoch, counted from 0."""
        return self.lr[sum(epoch >= milestone for milestone in self.milestones)]

    def annealed(self) -> "Schedule":
        """Return cosine annealing over the same epochs: lr[0] * (1 + cos(pi * epoch / epochs)) / 2.

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
    """Epochs of each task after the first; None for `epochs`."""
    lr: float | tuple[float, ...] = 0.1
    """One value, multiplied by `decay` at each milestone; or the value before and from each milestone on."""
    milestones: tuple[int, ...] = (40, 80)
    decay: float = 0.1
    lr_by_task: bool = False
    """Divide the learning rate by the task's number, as the authors' code does for SS-IL and FT."""
    batch: int = 128
    momentum: float = 0.9
    weight_decay: float = 1e-4
    new_head_init: Literal["default", "zero"] = "default"
    """The head's rows of new classes: PyTorch's linear initialisation, or zero (see `LinearHead`)."""
    increments: int | None = None
    """T, the number of increments of the stream; None if the number of tasks is not known."""
    later_milestones: tuple[int, ...] | None = None
    """Milestones of each task after the first; None for `milestones`, scaled to the epochs of later tasks."""
    later_weight_decay: float | None = None
    """Weight decay of each task after the first; None for `weight_decay`."""
    optimizer: OptimizerName = "sgd"
    """SGD with momentum; or AdamW, whose learning rates are smaller (try 0.001) and whose first beta is `momentum`."""

    def __post_init__(self) -> None:
        for milestones in (self.milestones, self.later_milestones):
            if isinstance(self.lr, tuple) and milestones is not None and len(self.lr) != len(milestones) + 1:
                raise UserError(
                    f"lr: {list(self.lr)} has {len(self.lr)} values for {len(milestones)} milestones; "
                    f"give one number, or one more value than milestones"
                )

    def stated(self) -> dict[str, Any]:
        """Return the settings as records state them: those that came later only if they are given.

        >>> "later_milestones" in Training().stated(), Training(later_weight_decay=2e-4).stated()["later_weight_decay"]
        (False, 0.0002)
        """
        return {name: value for name, value in asdict(self).items() if _CAME_LATER.get(name, ...) != value}

    @property
    def replay(self) -> int:
        """N_M, the number of exemplars in a replay batch: 2.5 * N_D / T, or N_D / 4 if T is not known.

        The paper has 16, 32 and 64 for T = 20, 10 and 5 at N_D = 128.

        >>> [Training(increments=T).replay for T in (20, 10, 5)]
        [16, 32, 64]
        """
        return max(1, round(2.5 * self.batch / self.increments) if self.increments else self.batch // 4)

    def schedule(self, task: int) -> Schedule:
        """Return the schedule of a task, counted from 1. Milestones are scaled to the epochs of later tasks."""
        epochs = self.epochs if task == 1 or self.later_epochs is None else self.later_epochs
        milestones = scale_milestones(self.milestones, self.epochs, epochs)
        if task > 1 and self.later_milestones is not None:
            milestones = self.later_milestones
        lrs = self.lr if isinstance(self.lr, tuple) else _decayed(self.lr, self.decay, len(milestones))
        divisor = task if self.lr_by_task else 1
        weight_decay = self.weight_decay if task == 1 else self._later_weight_decay
        rates = tuple(lr / divisor for lr in lrs)
        return Schedule(epochs, rates, milestones, self.momentum, weight_decay, self.optimizer)

    @property
    def _later_weight_decay(self) -> float:
        return self.weight_decay if self.later_weight_decay is None else self.later_weight_decay

    def tuning(
        self, epochs: int, of: int, lr: float, milestones: tuple[int, ...] = (), wanted: int | None = None
    ) -> Schedule:
        """Return the schedule of a shorter phase after the main one.

        Args:
            epochs: Its epochs, if the main phase has `of` epochs; scaled to the main phase's actual epochs.
            of: See `epochs`.
            lr: Its first learning rate.
            milestones: Its milestones at `epochs`, scaled too.
            wanted: Its epochs whatever the main phase has, if given.

        >>> Training(epochs=8).tuning(30, of=40, lr=0.01, milestones=(10, 20)).milestones
        (2, 4)
        """
        length = wanted or max(1, round(epochs * (self.later_epochs or self.epochs) / of))
        lrs = _decayed(lr, self.decay, len(milestones))
        scaled = scale_milestones(milestones, epochs, length)
        return Schedule(length, lrs, scaled, self.momentum, self._later_weight_decay, self.optimizer)


_CAME_LATER = {"later_milestones": None, "later_weight_decay": None, "optimizer": "sgd"}
"""The settings that records of older versions do not state, and what held then."""


def _decayed(lr: float, decay: float, times: int) -> tuple[float, ...]:
    """Return lr * decay^n for n from 0 to `times`."""
    return tuple(lr * decay**n for n in range(times + 1))


def scale_milestones(milestones: tuple[int, ...], epochs: int, wanted: int) -> tuple[int, ...]:
    """Return milestones for `wanted` epochs, in proportion to those for `epochs`; none is before epoch 1.

    >>> scale_milestones((40, 80), 100, 25), scale_milestones((40, 80), 100, 1)
    ((10, 20), (1, 1))
    """
    return tuple(max(1, round(milestone * wanted / epochs)) for milestone in milestones)


def scale_settings(settings: Mapping[str, Any], epochs: int, wanted: int) -> dict[str, Any]:
    """Return training settings for `epochs` scaled to `wanted` epochs: milestones and later epochs, if there are any.

    >>> scale_settings({"lr": 0.1, "milestones": (40, 80), "later_epochs": 50}, 100, 10)
    {'lr': 0.1, 'milestones': (4, 8), 'later_epochs': 5}
    """
    scaled = dict(settings)
    for name in ("milestones", "later_milestones"):
        if scaled.get(name) is not None:
            scaled[name] = scale_milestones(tuple(scaled[name]), epochs, wanted)
    if scaled.get("later_epochs") is not None:
        scaled["later_epochs"] = max(1, round(scaled["later_epochs"] * wanted / epochs))
    return scaled


def scale_epochs(settings: Mapping[str, Any], factor: float) -> dict[str, Any]:
    """Return a method's settings with `factor` times its epochs, rounded, but at least 1; milestones follow.

    Later tasks and phases after the main one are scaled too: `later_epochs`, options called `..._epochs`, and by
    `Training.tuning` the phases whose length follows the main phase's.

    >>> scale_epochs({"epochs": 40, "milestones": (10, 20, 30), "balanced_epochs": 30}, 0.2)
    {'epochs': 8, 'milestones': (2, 4, 6), 'balanced_epochs': 6}
    """
    whole = {"epochs": Training.epochs, **settings}
    names = [name for name, value in whole.items() if name.rpartition("_")[2] == "epochs" and value]
    scaled = {name: max(1, round(whole[name] * factor)) for name in names}
    return override_settings(settings, scaled)


def override_settings(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the training settings `base` with `changes`.

    If the epochs change, milestones and later epochs that are not in `changes` are scaled, `Training`'s defaults too.
    Milestones of later tasks follow the later epochs.

    >>> override_settings({"lr": 0.5}, {"epochs": 10})
    {'lr': 0.5, 'epochs': 10, 'milestones': (4, 8)}
    """
    merged = {**base, **changes}
    if "epochs" in changes:
        before = {**asdict(Training()), **base}
        names = ("milestones", "later_epochs", "later_milestones")
        follow = {name: before[name] for name in names if name not in changes}
        scaled = scale_settings(follow, before["epochs"], changes["epochs"])
        merged.update({name: value for name, value in scaled.items() if value is not None})
    return merged | scale_later_milestones(base, changes)


def scale_later_milestones(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the milestones of later tasks in `base`, scaled to the later epochs in `changes`; nothing if none change.

    >>> scale_later_milestones({"later_epochs": 170, "later_milestones": (80, 120)}, {"later_epochs": 17})
    {'later_milestones': (8, 12)}
    """
    if base.get("later_milestones") is None or "later_milestones" in changes or "later_epochs" not in changes:
        return {}
    before = base.get("later_epochs") or base.get("epochs") or Training.epochs
    return {"later_milestones": scale_milestones(base["later_milestones"], before, int(changes["later_epochs"]))}
