"""Parts of a data set: its first classes, a few images of each, a validation part in place of the test images."""

from dataclasses import replace

import torch
from torch import Tensor

from ssil.data.dataset import Dataset, select, split
from ssil.errors import UserError
from ssil.randomness import Randomness
from ssil.types import Samples


def subset(
    dataset: Dataset, classes: int | None = None, train_per_class: int | None = None, test_per_class: int | None = None
) -> Dataset:
    """The first `classes` classes, and of each the images with the smallest SHA-256 of their pixels."""
    if classes is not None:
        dataset = _first_classes(dataset, classes)
    if train_per_class is not None:
        dataset = replace(dataset, train=_few(dataset, dataset.train, train_per_class, "train_per_class"))
    if test_per_class is not None:
        dataset = replace(dataset, test=_few(dataset, dataset.test, test_per_class, "test_per_class"))
    return dataset


def validation_split(dataset: Dataset, fraction: float, seed: int) -> Dataset:
    """A set without the test images: in their place is this part of each class, taken out of training."""
    if not 0 < fraction < 1:
        raise UserError(f"validate: {fraction} must lie between 0 and 1: it is the part of each class to hold out")
    stay, held = split(dataset.train.labels, fraction, seed, "validation")
    return replace(dataset, train=select(dataset.train, stay), test=select(dataset.train, held))


def uneven(dataset: Dataset, least: float, seed: int) -> Dataset:
    """Fewer training images of most classes: from all of a class down to the part `least`, by equal ratios.

    Which class is left with how many is random.
    """
    if not 0 < least <= 1:
        raise UserError(f"least: {least} must lie above 0 and be at most 1: it is a part of a class's images")
    count = len(dataset.classes)
    order = torch.randperm(count, generator=Randomness(seed).at("uneven"))
    parts = least ** (order.double() / max(count - 1, 1))
    sizes = torch.bincount(dataset.train.labels, minlength=count)
    return replace(dataset, train=_first(dataset.train, (sizes * parts).round().long().clamp(min=1)))


def _first_classes(dataset: Dataset, count: int) -> Dataset:
    if not 1 <= count <= len(dataset.classes):
        raise UserError(f"classes: {count} must be between 1 and {len(dataset.classes)}, all that {dataset.name} has")
    train, test = (select(part, (part.labels < count).nonzero().squeeze(1)) for part in (dataset.train, dataset.test))
    return replace(dataset, train=train, test=test, classes=dataset.classes[:count])


def _few(dataset: Dataset, samples: Samples, count: int, option: str) -> Samples:
    """`count` images per class, in an order that does not depend on theirs."""
    sizes = torch.bincount(samples.labels, minlength=len(dataset.classes))
    most, poorest = int(sizes.min()), dataset.classes[int(sizes.argmin())]
    if count < 1:
        raise UserError(f"{option}: {count} must be at least 1")
    if count > most:
        raise UserError(
            f"{option}: {count} is too many, class {poorest!r} of {dataset.name} has only {most}; ask for no more"
        )
    return _first(samples, torch.full_like(sizes, count))


def _first(samples: Samples, counts: Tensor) -> Samples:
    """So many images of each class, in an order that does not depend on theirs."""
    labels, digests = samples.labels.tolist(), samples.images.keys()
    order = torch.tensor(sorted(range(len(samples)), key=lambda index: (labels[index], digests[index])))
    sizes = torch.bincount(samples.labels, minlength=len(counts))
    rank = torch.arange(len(order)) - (sizes.cumsum(0) - sizes)[samples.labels[order]]
    return select(samples, order[rank < counts[samples.labels[order]]])
