"""The data set that all sources lead to, and parts of it: fewer classes or images, a validation split, imbalance."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from ssil.core.errors import UserError
from ssil.core.randomness import Randomness
from ssil.core.samples import Samples
from ssil.data.augmentation import Transform
from ssil.data.image_index import Remark


class DatasetInfo(NamedTuple):
    """A line of `ssil datasets`."""

    name: str
    description: str
    classes: str
    size: str
    source: str


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training and test images with labels 0..C-1 in the set's own class order, and their transform to network input.

    `synthetic` images were drawn, not photographed; `remarks` are on files that were left out or look odd; `sources`
    name what images were drawn with, if that depends on the system.
    """

    name: str
    train: Samples
    test: Samples
    classes: tuple[str, ...]
    transform: Transform
    synthetic: bool = False
    remarks: tuple[Remark, ...] = ()
    sources: tuple[str, ...] = ()

    @property
    def left_out(self) -> tuple[Remark, ...]:
        """The remarks on files that were left out."""
        return tuple(remark for remark in self.remarks if remark.left_out)

    @cached_property
    def fingerprint(self) -> str:
        """16 hexadecimal digits of a SHA-256 over images, labels and class names; computed once."""
        digest = hashlib.sha256("\0".join(self.classes).encode())
        for samples in (self.train, self.test):
            digest.update(repr((len(samples), samples.images.shape)).encode())
            digest.update(samples.labels.numpy().tobytes())
            for block in samples.images.content():
                digest.update(block)
        return digest.hexdigest()[:16]


def select(samples: Samples, indices: Tensor) -> Samples:
    """Return the samples at these indices."""
    return Samples(samples.images.take(indices), samples.labels[indices])


def split(labels: Tensor, fraction: float, seed: int, purpose: str, names: Sequence[str] = ()) -> tuple[Tensor, Tensor]:
    """Return the indices that stay, and those of a random part of each class that is held out.

    At least one image is held out if the class has two or more. The draw depends on the class's label, or where `names`
    are given, on its name.

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


def subset(
    dataset: Dataset, classes: int | None = None, train_per_class: int | None = None, test_per_class: int | None = None
) -> Dataset:
    """Return the first `classes` classes, and of each the images with the smallest SHA-256 of their pixels."""
    if classes is not None:
        dataset = _first_classes(dataset, classes)
    if train_per_class is not None:
        dataset = replace(dataset, train=_per_class(dataset, dataset.train, train_per_class, "train_per_class"))
    if test_per_class is not None:
        dataset = replace(dataset, test=_per_class(dataset, dataset.test, test_per_class, "test_per_class"))
    return dataset


def validation_split(dataset: Dataset, fraction: float, seed: int) -> Dataset:
    """Return the training set split in two: a `fraction` of each class takes the place of the test images."""
    if not 0 < fraction < 1:
        raise UserError(f"validate: {fraction} must lie between 0 and 1: it is the fraction of each class to hold out")
    stay, held = validation_rows(dataset, fraction, seed)
    return replace(dataset, train=select(dataset.train, stay), test=select(dataset.train, held))


def validation_rows(dataset: Dataset, fraction: float, seed: int) -> tuple[Tensor, Tensor]:
    """Return the indices of the training images that stay, and of those that `validation_split` holds out."""
    return split(dataset.train.labels, fraction, seed, "validation")


def imbalanced(dataset: Dataset, least: float, seed: int) -> Dataset:
    """Return an imbalanced set: a class keeps from all of its training images down to the fraction `least`.

    The fractions form a geometric sequence; their order over the classes is random.
    """
    if not 0 < least <= 1:
        raise UserError(f"least: {least} must lie above 0 and be at most 1: it is a fraction of a class's images")
    count = len(dataset.classes)
    order = torch.randperm(count, generator=Randomness(seed).at("uneven"))
    fractions = least ** (order.double() / max(count - 1, 1))
    sizes = torch.bincount(dataset.train.labels, minlength=count)
    return replace(dataset, train=_smallest_digests(dataset.train, (sizes * fractions).round().long().clamp(min=1)))


def _first_classes(dataset: Dataset, count: int) -> Dataset:
    if not 1 <= count <= len(dataset.classes):
        raise UserError(f"classes: {count} must be between 1 and {len(dataset.classes)}, all that {dataset.name} has")
    train, test = (select(part, (part.labels < count).nonzero().squeeze(1)) for part in (dataset.train, dataset.test))
    return replace(dataset, train=train, test=test, classes=dataset.classes[:count])


def _per_class(dataset: Dataset, samples: Samples, count: int, option: str) -> Samples:
    """Return `count` images per class; raise UserError if a class has fewer."""
    sizes = torch.bincount(samples.labels, minlength=len(dataset.classes))
    most, poorest = int(sizes.min()), dataset.classes[int(sizes.argmin())]
    if count < 1:
        raise UserError(f"{option}: {count} must be at least 1")
    if count > most:
        raise UserError(
            f"{option}: {count} is too many: class {poorest!r} of {dataset.name!r} has {most}; ask for {most} or fewer"
        )
    return _smallest_digests(samples, torch.full_like(sizes, count))


def _smallest_digests(samples: Samples, counts: Tensor) -> Samples:
    """Return `counts[label]` images of each class: those with the smallest digests, whatever their order."""
    labels, digests = samples.labels.tolist(), samples.images.keys()
    order = torch.tensor(sorted(range(len(samples)), key=lambda index: (labels[index], digests[index])))
    sizes = torch.bincount(samples.labels, minlength=len(counts))
    rank = torch.arange(len(order)) - (sizes.cumsum(0) - sizes)[samples.labels[order]]
    return select(samples, order[rank < counts[samples.labels[order]]])
