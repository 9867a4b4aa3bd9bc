"""The exemplar memory: who gets room (`MemoryBudget`) apart from which samples stay (`Select`)."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from ssil.core.classes import ClassTable
from ssil.core.randomness import Randomness

Select = Callable[[int, Tensor, int], Tensor]
"""(class, indices of its candidates, how many at most) -> the indices to keep, the most valuable first."""


@dataclass(frozen=True)
class Memory:
    """The kept samples of each class, the most valuable first, as indices into the training samples (int64).

    >>> memory = Memory((torch.tensor([7, 3]), torch.tensor([5])))
    >>> memory.counts, memory.indices.tolist(), memory.labels.tolist(), len(memory)
    ((2, 1), [7, 3, 5], [0, 0, 1], 3)
    """

    exemplars: tuple[Tensor, ...] = ()

    @property
    def counts(self) -> tuple[int, ...]:
        """How many samples each class holds."""
        return tuple(map(len, self.exemplars))

    @property
    def indices(self) -> Tensor:
        """All kept samples, class by class."""
        return torch.cat([_nothing(), *self.exemplars])

    @property
    def labels(self) -> Tensor:
        """The class of each of `indices`."""
        return torch.repeat_interleave(torch.tensor(self.counts, dtype=torch.long))

    def __len__(self) -> int:
        return sum(self.counts)


class MemoryBudget(Protocol):
    """How many samples each class may keep."""

    kind: ClassVar[str]
    """What a record calls this rule."""

    def quotas(self, available: Sequence[int]) -> list[int]:
        """The size of each class, in order of arrival, given how many samples it has to choose from."""
        ...


@dataclass(frozen=True)
class FixedBudget:
    """A total that all classes share: sizes differ by at most one, the first to arrive get the extra ones.

    The room that a small class leaves is shared by the others.

    >>> FixedBudget(total=10).quotas([9, 9, 9]), FixedBudget(total=10).quotas([9, 1, 9])
    ([4, 3, 3], [5, 1, 4])
    """

    kind: ClassVar[str] = "fixed"
    total: int

    def quotas(self, available: Sequence[int]) -> list[int]:
        """Raise all classes to the highest common level that fits, then hand out what is left, one each."""
        levels = range(max(available, default=0) + 1)
        level = bisect_right(levels, self.total, key=lambda level: sum(min(level, has) for has in available)) - 1
        left = self.total - sum(min(level, has) for has in available)
        lucky = set([c for c, has in enumerate(available) if has > level][:left])
        return [min(level, has) + (c in lucky) for c, has in enumerate(available)]


@dataclass(frozen=True)
class GrowingBudget:
    """The same room for each class, however many there are (the paper's ring buffer)."""

    kind: ClassVar[str] = "growing"
    per_class: int

    def quotas(self, available: Sequence[int]) -> list[int]:
        """`per_class` each; all of a smaller class."""
        return [min(self.per_class, has) for has in available]


@dataclass(frozen=True)
class UnlimitedBudget:
    """Every sample stays: joint training."""

    kind: ClassVar[str] = "unlimited"

    def quotas(self, available: Sequence[int]) -> list[int]:
        """All that there is."""
        return list(available)


@dataclass(frozen=True)
class NoBudget:
    """No sample stays: learning without exemplars."""

    kind: ClassVar[str] = "nothing"

    def quotas(self, available: Sequence[int]) -> list[int]:
        """Zero each."""
        return [0] * len(available)


def random_selection(random: Randomness) -> Select:
    """The first of a permutation that depends on the seed and the class alone: equal for all methods."""

    def select(label: int, candidates: Tensor, count: int) -> Tensor:
        order = torch.randperm(len(candidates), generator=random.at("exemplars", label))
        return candidates[order[:count]]

    return select


def herding(features: Callable[[Tensor], Tensor]) -> Select:
    """Each pick brings the mean of the picks closest to the class mean; `features` maps indices to (n, d)."""

    def select(_: int, candidates: Tensor, count: int) -> Tensor:
        unit = F.normalize(features(candidates))
        mean = unit.mean(0)
        wanted, picks = mean, list[int]()
        while len(picks) < min(count, len(candidates)):
            closeness = unit @ wanted  # its argmax is argmin ||mean - (f + sum of picks) / k|| over unit vectors f
            closeness[picks] = -torch.inf
            picks.append(int(closeness.argmax()))
            wanted = wanted + mean - unit[picks[-1]]
        return candidates[picks]

    return select


def by_class(indices: Tensor, labels: Tensor) -> dict[int, Tensor]:
    """The samples at `indices`, class by class, in their order; `labels` are those of all samples.

    >>> by_class(torch.tensor([3, 1, 0]), labels=torch.tensor([2, 0, 1, 2]))
    {0: tensor([1]), 2: tensor([3, 0])}
    """
    groups = indices[labels[indices].argsort(stable=True)].split_with_sizes(labels[indices].bincount().tolist())
    return {label: group for label, group in enumerate(groups) if len(group)}


def update(
    memory: Memory, arrived: Mapping[int, Tensor], classes: ClassTable, budget: MemoryBudget, select: Select
) -> Memory:
    """The memory after a task that brought these samples (class -> indices).

    A class that is already held only ever loses its last samples, unless more of its images arrive: those fill
    what room is left behind the ones it holds.
    """
    held = memory.exemplars + (_nothing(),) * (classes.seen - len(memory.exemplars))
    quotas = budget.quotas([len(kept) + len(arrived.get(c, ())) for c, kept in enumerate(held)])

    def fill(c: int) -> Tensor:
        missing = quotas[c] - len(held[c])
        return torch.cat([held[c], select(c, arrived[c], missing)]) if missing > 0 else held[c][: quotas[c]]

    return Memory(tuple(map(fill, range(classes.seen))))


def _nothing() -> Tensor:
    return torch.empty(0, dtype=torch.long)
