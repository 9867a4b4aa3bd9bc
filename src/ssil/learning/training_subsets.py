"""Which of a task's images a phase trains on: a balanced set (EEIL, PODNet), a hold-out set and all but it (BiC).

A hold-out set is not stored: a selection is a function of the images and the seed, so each task computes it again.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from ssil.core.classes import ClassTable
from ssil.core.randomness import Randomness
from ssil.learning.batches import Pool
from ssil.learning.memory import by_class, random_selection
from ssil.learning.method import ImageSelection

Groups = dict[int, Tensor]
"""Indices of images by class."""


def balanced(pool: Pool, classes: ClassTable, random: Randomness) -> Pool:
    """Select the same number of images of every class: as many as the smallest class has.

    Old classes give their most valuable exemplars, new classes the images that a random memory would keep. More
    images of an old class, which a task may bring, are left out.
    """
    old, new = _groups(pool, classes, random)
    each = min(map(len, [*old.values(), *new.values()]))
    from_new, from_old = (_joined(pool, [group[:each] for group in side.values()]) for side in (new, old))
    return Pool(from_new, from_old, pool.labels)


def replaying_new_classes(pool: Pool, classes: ClassTable, random: Randomness) -> Pool:
    """Select all images; those to be replayed are the exemplars, and of each new class as many as an old class has.

    The latter are the task's images that a random memory would keep. They are in the pass over new images too.
    """
    old, new = _groups(pool, classes, random)
    each = max(1, round(len(pool.old) / max(1, len(old))))
    return Pool(pool.new, _joined(pool, [pool.old, *(group[:each] for group in new.values())]), pool.labels)


def hold_out_per_class(pool: Pool, classes: ClassTable, random: Randomness, share: float) -> Pool:
    """Select the same number of images of every class: `share` of the smallest class, at least one.

    In the first task, which has no exemplars, that is a share of all images (in BiC's paper: of the memory). The
    selection takes an old class's first exemplars, and of a new class the images that a random memory keeps longest.
    So a later task holds out a part of what was held out when the class was new, which was never trained on.
    """
    old, new = _groups(pool, classes, random)
    each = max(1, int(share * min(map(len, [*old.values(), *new.values()]))))
    return _held_out(pool, *({c: _at_most_half(group, each) for c, group in side.items()} for side in (old, new)))


def hold_out_in_total(pool: Pool, classes: ClassTable, random: Randomness, share: float) -> Pool:
    """Select `share` of the memory from the old classes and as many images from the new ones, as SS-IL's authors do.

    Each side divides its images evenly among its classes and takes the last of each class: the least valuable
    exemplars, and of new classes the images that a memory drops first. A remainder is taken from the largest old
    classes, and not at all from new ones.
    """
    old, new = _groups(pool, classes, random)
    total = int(share * len(pool.old))
    each, more = divmod(total, len(old))
    largest = set(sorted(old, key=lambda c: -len(old[c]))[:more])
    return _held_out(
        pool,
        {c: _at_most_half(group.flip(0), each + (c in largest)) for c, group in old.items()},
        {c: _at_most_half(group.flip(0), total // len(new)) for c, group in new.items()},
    )


def all_but(held_out: ImageSelection) -> ImageSelection:
    """Return the selection of all images that `held_out` does not select."""

    def select(pool: Pool, classes: ClassTable, random: Randomness) -> Pool:
        out = held_out(pool, classes, random).all
        return Pool(pool.new[~torch.isin(pool.new, out)], pool.old[~torch.isin(pool.old, out)], pool.labels)

    return select


def _groups(pool: Pool, classes: ClassTable, random: Randomness) -> tuple[Groups, Groups]:
    """Old classes' exemplars and new classes' images; in each class, those that a memory keeps longest come first."""
    select = random_selection(random)
    new = {c: select(c, group, len(group)) for c, group in pool.of_new_classes(classes.old).items()}
    return by_class(pool.old, pool.labels), new


def _at_most_half(group: Tensor, count: int) -> Tensor:
    """The first `count` images of a class, but at most half of it: a class of one image keeps it for training."""
    return group[: min(count, len(group) // 2)]


def _held_out(pool: Pool, old: Groups, new: Groups) -> Pool:
    """The pool of the given images; an empty pool if there are old classes and one side has no image.

    A correction that is fitted to old classes alone, or to new ones alone, would only raise the scores of that side.
    """
    from_new, from_old = (_joined(pool, side.values()) for side in (new, old))
    if old and not (len(from_old) and len(from_new)):
        return Pool(pool.new[:0], pool.old[:0], pool.labels)
    return Pool(from_new, from_old, pool.labels)


def _joined(pool: Pool, groups: Iterable[Tensor]) -> Tensor:
    """The indices of all groups; none if there is no group, for a task may bring no new class."""
    return torch.cat([pool.labels[:0], *groups])
