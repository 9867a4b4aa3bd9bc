"""How mini-batches are put together from a task's new images and the exemplars.

A batch is a function of its position: any epoch and step can be asked for, in any order.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from ssil.core.randomness import Randomness
from ssil.learning.memory import by_class


class Batch(NamedTuple):
    """Indices of one global mini-batch; the replayed part is apart so that processes can share each part evenly."""

    main: Tensor
    replayed: Tensor


@dataclass(frozen=True)
class Pool:
    """What there is to train on: indices of the task's images, of the exemplars, and the label of every index."""

    new: Tensor
    old: Tensor
    labels: Tensor

    @property
    def all(self) -> Tensor:
        """New images, then exemplars."""
        return torch.cat([self.new, self.old])

    def of_new_classes(self, old: int) -> dict[int, Tensor]:
        """The new images, class by class, of the classes that are not among the first `old`."""
        return {label: group for label, group in by_class(self.new, self.labels).items() if label >= old}


class Batches(Protocol):
    """A rule for mini-batches."""

    def steps(self, pool: Pool) -> int:
        """Steps of one epoch."""
        ...

    def epoch(self, pool: Pool, random: Randomness, epoch: int) -> Callable[[int], Batch]:
        """The batches of one epoch, by step."""
        ...


def _full_batches(images: int, batch: int) -> int:
    """The last incomplete batch is dropped, unless it is the only one."""
    return max(1, images // batch)


def _shuffled(indices: Tensor, batch: int, random: Randomness, epoch: int) -> Callable[[int], Tensor]:
    order = indices[torch.randperm(len(indices), generator=random.at("order", epoch))]
    return lambda step: order[step * batch : (step + 1) * batch]


def _endless(items: Tensor, start: int, count: int, generator: Callable[[int], torch.Generator]) -> Tensor:
    """`count` items from position `start` of an endless stream that shuffles the items anew for each pass."""
    first, last = start // len(items), (start + count - 1) // len(items)
    passes = [items[torch.randperm(len(items), generator=generator(number))] for number in range(first, last + 1)]
    offset = start - first * len(items)
    return torch.cat(passes)[offset : offset + count]


@dataclass(frozen=True)
class Mixed:
    """One shuffled loader over new images and exemplars; the ratio is what falls out of it."""

    batch: int
    drop_last: bool = True
    """Whether the last batch is left out if it is incomplete; the only one never is."""

    def images(self, pool: Pool) -> Tensor:
        """What an epoch passes over."""
        return pool.all

    def steps(self, pool: Pool) -> int:
        """Full batches, and the incomplete one if it is kept."""
        images = len(self.images(pool))
        return _full_batches(images, self.batch) if self.drop_last else -(-images // self.batch)

    def epoch(self, pool: Pool, random: Randomness, epoch: int) -> Callable[[int], Batch]:
        """One pass."""
        main = _shuffled(self.images(pool), self.batch, random, epoch)
        return lambda step: Batch(main(step), pool.old[:0])


@dataclass(frozen=True)
class NewOnly(Mixed):
    """One shuffled loader over the new images: no exemplars (LwF)."""

    def images(self, pool: Pool) -> Tensor:
        """The new images."""
        return pool.new


@dataclass(frozen=True)
class Replay:
    """Experience replay: `batch` new images and `replay` exemplars in every step (SS-IL, section 4.1).

    An epoch is one pass over the new images; the exemplars come from an endless stream of shuffled passes.
    """

    batch: int
    replay: int

    def steps(self, pool: Pool) -> int:
        """Full batches of the new images."""
        return _full_batches(len(pool.new), self.batch)

    def epoch(self, pool: Pool, random: Randomness, epoch: int) -> Callable[[int], Batch]:
        """A pass over the new images, each step joined by exemplars."""
        main = _shuffled(pool.new, self.batch, random, epoch)
        if not len(pool.old):
            return lambda step: Batch(main(step), pool.old)
        first = epoch * self.steps(pool)

        def replayed(step: int) -> Tensor:
            start = (first + step) * self.replay
            return _endless(pool.old, start, self.replay, lambda number: random.at("replay", number))

        return lambda step: Batch(main(step), replayed(step))


@dataclass(frozen=True)
class ClassBalanced:
    """Every class equally often, whatever the number of its images; as many steps as `Mixed` takes."""

    batch: int

    def steps(self, pool: Pool) -> int:
        """Full batches of everything."""
        return _full_batches(len(pool.all), self.batch)

    def epoch(self, pool: Pool, random: Randomness, epoch: int) -> Callable[[int], Batch]:
        """Classes from an endless stream of shuffled passes; each class's images from a stream of its own."""
        of_class = list(by_class(pool.all, pool.labels).values())
        size = min(self.batch, len(pool.all))
        first = epoch * self.steps(pool)

        @cache
        def shuffled(which: int, number: int) -> Tensor:
            images = of_class[which]
            return images[torch.randperm(len(images), generator=random.at("balanced", which, number))]

        def image(position: int, which: int) -> Tensor:
            number, place = divmod(position // len(of_class), len(of_class[which]))
            return shuffled(which, number)[place : place + 1]

        def batch(step: int) -> Batch:
            start = (first + step) * size
            order = _endless(torch.arange(len(of_class)), start, size, lambda number: random.at("classes", number))
            images = [image(start + slot, which) for slot, which in enumerate(order.tolist())]
            return Batch(torch.cat(images), pool.old[:0])

        return batch
