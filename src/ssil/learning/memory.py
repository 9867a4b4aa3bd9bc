"""The exemplar memory: how many samples each class keeps (`MemoryBudget`), and which ones (`Select`)."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from ssil.core.classes import ClassTable
from ssil.core.randomness import Randomness

Select = Callable[[int, Tensor, int], Tensor]
"""(class, indices of its candidates, largest number to keep) -> the indices to keep, the most valuable first."""

Renew = Callable[[int, Tensor, Tensor, int], Tensor]
"""(class, its exemplars, its newly arrived samples, quota) -> its exemplars from now on, the most valuable first.

They are as many as the quota, which is at most the number of exemplars and arrived samples together."""


@dataclass(frozen=True)
class Memory:
    """The exemplars of each class, the most valuable first, as indices (int64) of training samples.

    >>> memory = Memory((torch.tensor([7, 3]), torch.tensor([5])))
    >>> memory.counts, memory.indices.tolist(), memory.labels.tolist(), len(memory)
    ((2, 1), [7, 3, 5], [0, 0, 1], 3)
    """

    exemplars: tuple[Tensor, ...] = ()
    stored: Mapping[str, Tensor] = field(default_factory=dict)
    """What is kept with each exemplar beside its image: tensors by name, with one row per exemplar of `indices`.

    A row of NaN stands for nothing; see `exemplar_values.py`."""

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of exemplars of each class."""
        return tuple(map(len, self.exemplars))

    @property
    def indices(self) -> Tensor:
        """The indices of all exemplars, class by class."""
        return torch.cat([_nothing(), *self.exemplars])

    @property
    def labels(self) -> Tensor:
        """The class of each exemplar in `indices`."""
        return torch.repeat_interleave(torch.tensor(self.counts, dtype=torch.long))

    def __len__(self) -> int:
        return sum(self.counts)


class MemoryBudget(Protocol):
    """A rule for the number of exemplars of each class."""

    kind: ClassVar[str]
    """The name of the rule in records."""

    def quotas(self, available: Sequence[int]) -> list[int]:
        """Return the number of exemplars of each class, given the number of its candidates; in order of arrival."""
        ...


@dataclass(frozen=True)
class FixedBudget:
    """A total number of exemplars that all classes share equally.

    Where the total does not divide evenly, the classes that arrived first get one exemplar more. What a class with
    few images does not use is shared by the others; `quotas` takes the number of images that each class has.

    >>> FixedBudget(total=10).quotas([9, 9, 9]), FixedBudget(total=10).quotas([9, 1, 9])
    ([4, 3, 3], [5, 1, 4])
    """

    kind: ClassVar[str] = "fixed"
    total: int

    def quotas(self, available: Sequence[int]) -> list[int]:
        """Return the largest equal share that fits; what is left of the total goes to the first classes, one each."""
        levels = range(max(available, default=0) + 1)
        level = bisect_right(levels, self.total, key=lambda level: sum(min(level, has) for has in available)) - 1
        left = self.total - sum(min(level, has) for has in available)
        one_more = set([c for c, has in enumerate(available) if has > level][:left])
        return [min(level, has) + (c in one_more) for c, has in enumerate(available)]


@dataclass(frozen=True)
class GrowingBudget:
    """The same number of exemplars for each class, however many classes there are (the paper's ring buffer)."""

    kind: ClassVar[str] = "growing"
    per_class: int

    def quotas(self, available: Sequence[int]) -> list[int]:
        """Return `per_class` for each class, or all images of a smaller class."""
        return [min(self.per_class, has) for has in available]


MEGABYTE = 2**20


@dataclass(frozen=True)
class MegabyteBudget:
    """As many exemplars as fit into so many megabytes beside the model; all classes share them as a fixed total.

    >>> MegabyteBudget(1.0, exemplar_bytes=3072, model_bytes=MEGABYTE // 2).quotas([99, 99, 99])
    [57, 57, 56]
    """

    kind: ClassVar[str] = "megabytes"
    megabytes: float
    exemplar_bytes: int = 1
    """The bytes of one exemplar: its image, and what is stored with it."""
    model_bytes: int = 0

    @property
    def total(self) -> int:
        """The number of exemplars that fit."""
        return max(0, int(self.megabytes * MEGABYTE - self.model_bytes) // self.exemplar_bytes)

    def quotas(self, available: Sequence[int]) -> list[int]:
        """Return the quotas of a fixed budget of as many exemplars as fit."""
        return FixedBudget(self.total).quotas(available)


@dataclass(frozen=True)
class UnlimitedBudget:
    """All samples are kept: joint training."""

    kind: ClassVar[str] = "unlimited"

    def quotas(self, available: Sequence[int]) -> list[int]:
        """Return the number of candidates of each class."""
        return list(available)


@dataclass(frozen=True)
class NoBudget:
    """No sample is kept: learning without exemplars."""

    kind: ClassVar[str] = "nothing"

    def quotas(self, available: Sequence[int]) -> list[int]:
        """Return 0 for each class."""
        return [0] * len(available)


def random_selection(random: Randomness) -> Select:
    """Return the rule that keeps the first samples of a permutation.

    The permutation depends on the seed and the class only: it is the same for all methods and memory sizes.
    """

    def select(label: int, candidates: Tensor, count: int) -> Tensor:
        order = torch.randperm(len(candidates), generator=random.at("exemplars", label))
        return candidates[order[:count]]

    return select


def herding(features: Callable[[Tensor], Tensor]) -> Select:
    """Return iCaRL's rule: each next exemplar brings the mean of the chosen ones closest to the class mean.

    Args:
        features: Maps the indices of n training samples to their features (n, d), which are then normalised.
    """

    def select(_: int, candidates: Tensor, count: int) -> Tensor:
        unit = F.normalize(features(candidates))
        mean = unit.mean(0)
        wanted, picks = mean, list[int]()
        while len(picks) < min(count, len(candidates)):
            closeness = (
                unit @ wanted
            )  # iCaRL, Algorithm 4: its argmax is argmin ||mean - (f + sum of picks) / k|| over f
            closeness[picks] = -torch.inf
            picks.append(int(closeness.argmax()))
            wanted = wanted + mean - unit[picks[-1]]
        return candidates[picks]

    return select


def by_class(indices: Tensor, labels: Tensor) -> dict[int, Tensor]:
    """Return the `indices` of each class, in their order; `labels` are the labels of all samples.

    >>> by_class(torch.tensor([3, 1, 0]), labels=torch.tensor([2, 0, 1, 2]))
    {0: tensor([1]), 2: tensor([3, 0])}
    """
    groups = indices[labels[indices].argsort(stable=True)].split_with_sizes(labels[indices].bincount().tolist())
    return {label: group for label, group in enumerate(groups) if len(group)}


def keeping(select: Select) -> Renew:
    """Return the rule that keeps the exemplars of a class; newly arrived samples fill the rest of its quota."""

    def renew(label: int, held: Tensor, arrived: Tensor, quota: int) -> Tensor:
        missing = quota - len(held)
        return torch.cat([held, select(label, arrived, missing)]) if missing > 0 else held[:quota]

    return renew


def most_recent(select: Select) -> Renew:
    """Return the rule that keeps the newest samples of a class: those that have just arrived, then its exemplars."""

    def renew(label: int, held: Tensor, arrived: Tensor, quota: int) -> Tensor:
        return torch.cat([select(label, arrived, quota), held])[:quota]

    return renew


def reservoir(priorities: Callable[[Tensor], Tensor]) -> Renew:
    """Return the rule that keeps a uniform sample of all samples of a class that have ever arrived.

    Every sample has a random number for ever; those with the smallest are kept. This needs no count of the samples
    seen. A class whose exemplars were chosen by another rule goes on as if no others had ever arrived.

    Args:
        priorities: Maps indices of samples to their random numbers.
    """

    def renew(_: int, held: Tensor, arrived: Tensor, quota: int) -> Tensor:
        candidates = torch.cat([held, arrived])
        return candidates[priorities(candidates).argsort(stable=True)[:quota]]

    return renew


def update(
    memory: Memory,
    arrived: Mapping[int, Tensor],
    classes: ClassTable,
    budget: MemoryBudget,
    select: Select,
    renewal: Callable[[Select], Renew] = keeping,
) -> Memory:
    """Return the memory after a task; what is stored with an exemplar goes where the exemplar goes.

    Args:
        memory: The memory before the task.
        arrived: The task's training samples: class -> indices. Those that are exemplars already don't count as
            arrived.
        classes: The class table after the task.
        budget: The number of exemplars of each class.
        select: The rule that selects exemplars among arrived samples.
        renewal: The rule for classes that have exemplars already, given `select`.
    """
    held = memory.exemplars + (_nothing(),) * (classes.seen - len(memory.exemplars))
    new = [_without(arrived.get(c, _nothing()), held[c]) for c in range(classes.seen)]
    quotas = budget.quotas([*map(len, map(torch.cat, zip(held, new, strict=True)))])
    chosen = Memory(tuple(map(renewal(select), range(classes.seen), held, new, quotas)))
    return Memory(chosen.exemplars, carried(memory.stored, memory.indices, chosen.indices))


def carried(stored: Mapping[str, Tensor], before: Tensor, after: Tensor) -> dict[str, Tensor]:
    """Return one row of each stored tensor per exemplar in `after`: its row of `before`, or NaN if it has none.

    >>> carried({"logits": torch.tensor([[1.0], [2.0]])}, torch.tensor([7, 3]), torch.tensor([3, 8]))["logits"].tolist()
    [[2.0], [nan]]
    """
    if not stored:
        return {}
    row_of = {index: row for row, index in enumerate(before.tolist())}
    rows = torch.tensor([row_of.get(index, len(before)) for index in after.tolist()], dtype=torch.long)
    return {name: with_empty_row(values)[rows] for name, values in stored.items()}


def with_empty_row(values: Tensor) -> Tensor:
    """Return stored values with a last row of NaN, which stands for nothing."""
    return torch.cat([values, values.new_full((1, *values.shape[1:]), torch.nan)])


def _without(indices: Tensor, held: Tensor) -> Tensor:
    """Return the indices that are not held."""
    return indices[~torch.isin(indices, held)]


def _nothing() -> Tensor:
    return torch.empty(0, dtype=torch.long)
