"""Mini-batches: how they are composed of a task's new images and exemplars, divided among processes, and loaded.

A batch depends on its epoch and step only: batches can be asked for in any order.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Protocol, Self

import torch
from torch import Tensor

from ssil.core.errors import UserError
from ssil.core.randomness import Randomness
from ssil.data.augmentation import Draws
from ssil.learning.execution import ExecutionContext
from ssil.learning.memory import by_class


class Batch(NamedTuple):
    """The indices of a global mini-batch, in two parts that are both divided evenly among the processes."""

    main: Tensor
    replayed: Tensor


@dataclass(frozen=True)
class Pool:
    """The training images of a task: indices of new images and of exemplars, and the labels of all samples."""

    new: Tensor
    """The indices of the task's images."""
    old: Tensor
    """The indices of the exemplars."""
    labels: Tensor
    """The labels of all samples, by index."""

    @property
    def all(self) -> Tensor:
        """The indices of the new images, followed by those of the exemplars that have not come again among them."""
        return torch.cat([self.new, self.old[~torch.isin(self.old, self.new)]])

    def of_new_classes(self, old: int) -> dict[int, Tensor]:
        """Return the new images of each class, except for the first `old` classes."""
        return {label: group for label, group in by_class(self.new, self.labels).items() if label >= old}


class Batches(Protocol):
    """A rule that composes the mini-batches of an epoch."""

    def steps(self, pool: Pool) -> int:
        """Return the number of steps of one epoch."""
        ...

    def epoch(self, pool: Pool, random: Randomness, epoch: int) -> Callable[[int], Batch]:
        """Return the function that gives the batch of each step of an epoch."""
        ...


def _full_batches(images: int, batch: int) -> int:
    """Return the number of batches without the last incomplete one, unless that is the only one."""
    return max(1, images // batch)


def _shuffled(indices: Tensor, batch: int, random: Randomness, epoch: int) -> Callable[[int], Tensor]:
    """Return the function that gives the indices of each step of one shuffled pass."""
    order = indices[torch.randperm(len(indices), generator=random.at("order", epoch))]
    return lambda step: order[step * batch : (step + 1) * batch]


def _endless(items: Tensor, start: int, count: int, generator: Callable[[int], torch.Generator]) -> Tensor:
    """Return `count` items from position `start` of an endless sequence of passes, each pass shuffled anew."""
    first, last = start // len(items), (start + count - 1) // len(items)
    passes = [items[torch.randperm(len(items), generator=generator(number))] for number in range(first, last + 1)]
    offset = start - first * len(items)
    return torch.cat(passes)[offset : offset + count]


@dataclass(frozen=True)
class Mixed:
    """New images and exemplars in one shuffled pass, in the ratio in which they are there."""

    batch: int
    """The images in a batch."""
    drop_last: bool = True
    """Whether an incomplete last batch is left out, unless it is the only one."""

    def images(self, pool: Pool) -> Tensor:
        """Return the images of one pass."""
        return pool.all

    def steps(self, pool: Pool) -> int:
        """Return the number of full batches, plus the incomplete one if it is kept."""
        images = len(self.images(pool))
        return _full_batches(images, self.batch) if self.drop_last else -(-images // self.batch)

    def epoch(self, pool: Pool, random: Randomness, epoch: int) -> Callable[[int], Batch]:
        """Return the batches of one pass."""
        main = _shuffled(self.images(pool), self.batch, random, epoch)
        return lambda step: Batch(main(step), pool.old[:0])


@dataclass(frozen=True)
class NewOnly(Mixed):
    """New images in one shuffled pass, without exemplars (LwF)."""

    def images(self, pool: Pool) -> Tensor:
        """Return the new images."""
        return pool.new


@dataclass(frozen=True)
class Replay:
    """Experience replay: `batch` new images and `replay` exemplars in every step (SS-IL, section 4.1).

    An epoch is one pass over the new images; exemplars come from an endless sequence of shuffled passes.
    """

    batch: int
    """The new images in a batch."""
    replay: int
    """The exemplars in a batch; `Training.replay` gives the paper's number."""

    def steps(self, pool: Pool) -> int:
        """Return the number of full batches of new images."""
        return _full_batches(len(pool.new), self.batch)

    def epoch(self, pool: Pool, random: Randomness, epoch: int) -> Callable[[int], Batch]:
        """Return the batches of one pass over the new images, with exemplars in each."""
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
    """Images of every class equally often, whatever their number; an epoch has as many steps as with `Mixed`."""

    batch: int

    def steps(self, pool: Pool) -> int:
        """Return the number of full batches of new images and exemplars."""
        return _full_batches(len(pool.all), self.batch)

    def epoch(self, pool: Pool, random: Randomness, epoch: int) -> Callable[[int], Batch]:
        """Return batches whose classes come from endless shuffled passes, and each class's images likewise."""
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


class LocalBatch(NamedTuple):
    """One process's share of a global batch: images as fetched, draws for their augmentation, labels, indices.

    `replayed` are those from the second part of the batch.
    """

    pixels: Tensor
    draws: Draws
    labels: Tensor
    indices: Tensor
    replayed: Tensor

    def split(self, count: int) -> list[Self]:
        """Return at most `count` parts of nearly equal size, with new and replayed images in each."""
        if count == 1:
            return [self]
        rows = [torch.arange(len(self.labels))[first::count] for first in range(min(count, len(self.labels)))]
        return [self._at(row) for row in rows]

    def _at(self, row: Tensor) -> Self:
        pixels, draws, *rest = self
        return type(self)(pixels[row], draws.take(row), *(values[row] for values in rest))


def load(batch: Batch, generator: torch.Generator, context: ExecutionContext, least: int) -> LocalBatch:
    """Fetch this process's share of a global batch. Augmentation is drawn for the global batch and then divided.

    Raises:
        UserError: The batch has fewer than `least` images, or fewer than one per process.
    """
    rank, world = context.fabric.global_rank, context.fabric.world_size
    indices = torch.cat(batch)
    if len(indices) < least or max(map(len, batch)) < world:
        few = f"{len(indices)} training image(s) for {world} process(es)"
        cure = "fewer --devices" if world > 1 else "fewer --tasks"
        raise UserError(f"batch: {few}, of which batch norm needs two each; give the task more images, or {cure}")
    main, replayed = (torch.arange(len(part))[rank::world] for part in batch)
    slots = torch.cat([main, len(batch.main) + replayed])
    draws = context.transform.draw(len(indices), generator).take(slots)
    local, labels = indices[slots], context.samples.labels
    return LocalBatch(context.samples.images.fetch(local, draws), draws, labels[local], local, slots >= len(batch.main))
