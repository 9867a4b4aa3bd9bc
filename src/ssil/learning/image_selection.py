"""Images kept from training, on which a bias correction is fitted (BiC). Not stored: each task finds its own again.

No class gives more than half of its images, so a class of one keeps it. Where only old or only new classes have
images to give, nothing is held out: a correction learnt from one side would only push that side up.
"""

import torch
from torch import Tensor

from ssil.core.classes import ClassTable
from ssil.core.randomness import Randomness
from ssil.learning.batches import Pool
from ssil.learning.memory import by_class, random_selection
from ssil.learning.method import Choice

Groups = dict[int, Tensor]


def per_class(pool: Pool, classes: ClassTable, random: Randomness, share: float) -> Pool:
    """As many images of every class: a share of the smallest class, at least one.

    At the first task, which has no exemplars, that is a share of all images, where the original's is of the memory.
    They are the first of an old class's exemplars, and of a new class those that a random memory keeps longest: what
    was held out when a class was new is what is held out later, when fewer are.
    """
    old, new = _groups(pool, classes, random)
    each = max(1, int(share * min(map(len, [*old.values(), *new.values()]))))
    return _held(pool, *({c: _first(group, each) for c, group in side.items()} for side in (old, new)))


def in_total(pool: Pool, classes: ClassTable, random: Randomness, share: float) -> Pool:
    """A share of the memory from old classes and as many from new classes, each side evenly among its classes.

    The last of each class, as in the code of SS-IL's authors: the least valuable exemplars, and of new classes those
    that a memory keeps last. What does not divide comes from the largest old classes, and not at all from new ones.
    """
    old, new = _groups(pool, classes, random)
    total = int(share * len(pool.old))
    each, more = divmod(total, len(old))
    largest = set(sorted(old, key=lambda c: -len(old[c]))[:more])
    return _held(
        pool,
        {c: _first(group.flip(0), each + (c in largest)) for c, group in old.items()},
        {c: _first(group.flip(0), total // len(new)) for c, group in new.items()},
    )


def without(held: Choice) -> Choice:
    """All images but those held out."""

    def rest(pool: Pool, classes: ClassTable, random: Randomness) -> Pool:
        out = held(pool, classes, random).all
        return Pool(pool.new[~torch.isin(pool.new, out)], pool.old[~torch.isin(pool.old, out)], pool.labels)

    return rest


def _groups(pool: Pool, classes: ClassTable, random: Randomness) -> tuple[Groups, Groups]:
    """Old classes' exemplars and new classes' images, those that the memory keeps longest first."""
    select = random_selection(random)
    new = {c: select(c, group, len(group)) for c, group in pool.of_new_classes(classes.old).items()}
    return by_class(pool.old, pool.labels), new


def _first(group: Tensor, wanted: int) -> Tensor:
    """So many, but never more than half of a class."""
    return group[: min(wanted, len(group) // 2)]


def _held(pool: Pool, old: Groups, new: Groups) -> Pool:
    """The pool of these images; of none, if there are old classes and one side has nothing."""
    from_new, from_old = (torch.cat([pool.labels[:0], *side.values()]) for side in (new, old))
    if old and not (len(from_old) and len(from_new)):
        return Pool(pool.new[:0], pool.old[:0], pool.labels)
    return Pool(from_new, from_old, pool.labels)
