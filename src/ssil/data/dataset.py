"""What a data set is, whatever its source."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from ssil.data.augment import Transform
from ssil.data.listing import Remark
from ssil.randomness import Randomness
from ssil.types import Samples


class Info(NamedTuple):
    """One line of a listing of data sets."""

    name: str
    description: str
    classes: str
    size: str
    source: str


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training and test images with labels 0..C-1 in the set's own class order, and how to feed them to a network.

    `synthetic` says that the images were made, not taken; `remarks` tell of files that were left out, and of oddities.
    """

    name: str
    train: Samples
    test: Samples
    classes: tuple[str, ...]
    transform: Transform
    synthetic: bool = False
    remarks: tuple[Remark, ...] = ()

    @property
    def left_out(self) -> tuple[Remark, ...]:
        """The remarks on what was left out."""
        return tuple(remark for remark in self.remarks if remark.left_out)

    @cached_property
    def fingerprint(self) -> str:
        """16 hexadecimal digits of a SHA-256 over the images, labels and class names; computed once."""
        digest = hashlib.sha256("\0".join(self.classes).encode())
        for samples in (self.train, self.test):
            digest.update(repr((len(samples), samples.images.shape)).encode())
            digest.update(samples.labels.numpy().tobytes())
            for block in samples.images.content():
                digest.update(block)
        return digest.hexdigest()[:16]


def select(samples: Samples, indices: Tensor) -> Samples:
    """The samples at these indices."""
    return Samples(samples.images.take(indices), samples.labels[indices])


def split(labels: Tensor, fraction: float, seed: int, purpose: str, names: Sequence[str] = ()) -> tuple[Tensor, Tensor]:
    """Indices that stay, and a random part of each class that is held out: one at least, if the class has two or more.

    Which part depends on the class's label, or where `names` are given, on its name.

    >>> stay, held = split(torch.tensor([0, 0, 0, 0, 1, 1, 2]), fraction=0.5, seed=0, purpose="example")
    >>> len(stay), len(held), 6 in stay
    (4, 3, True)
    """
    held = torch.zeros(len(labels), dtype=torch.bool)
    groups = labels.argsort(stable=True).split(labels.bincount().tolist())
    for label, members in enumerate(groups):
        count = max(0, min(max(1, round(fraction * len(members))), len(members) - 1))
        random = Randomness(seed).at(purpose, names[label] if names else label)
        order = torch.randperm(len(members), generator=random)
        held[members[order[:count]]] = True
    return (~held).nonzero().squeeze(1), held.nonzero().squeeze(1)
