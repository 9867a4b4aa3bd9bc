"""Decide which pairs of classes look like one class under two names, or have the same name but for its spelling."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ssil.classifier.advice.image_measures import Values
from ssil.core.spelling import plain_spelling

ALIKE = 0.35
"""Two classes look like one if so large a share of their images is nearer to the other class: chance gives a half."""
MIN_ALIKE = 5
"""Each of the two has so many images or more."""


class AlikeClasses(NamedTuple):
    """Two classes, the share of their images that look more like the other one, and the number of those images."""

    first: int
    second: int
    share: float
    images: int


def alike_classes(nearer: Values, counts: Sequence[int]) -> list[AlikeClasses]:
    """Return the pairs of classes that look like one, the most alike first.

    Args:
        nearer: (K, K) the share of a class's images that are nearer to another class than to their own.
        counts: The images of each class.
    """
    sizes = np.array(counts, dtype=float)
    wrong = nearer * sizes[:, None]
    shares = np.triu((wrong + wrong.T) / np.maximum(1, sizes[:, None] + sizes), 1)
    large = sizes >= MIN_ALIKE
    found = np.argwhere((shares >= ALIKE) & large[:, None] & large)
    pairs = [AlikeClasses(int(a), int(b), float(shares[a, b]), int(wrong[a, b] + wrong[b, a])) for a, b in found]
    return sorted(pairs, key=lambda pair: -pair.share)


def spelt_alike(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of names that differ by case, spaces or hyphens only.

    >>> [*spelt_alike(["leek", "kiwi", "Leek"])]
    [('leek', 'Leek')]
    """
    first = dict[str, str]()
    for name in names:
        if (other := first.setdefault(plain_spelling(name), name)) != name:
            yield other, name
