"""From a listing of encoded images to a data set: what is good, how it is split, where it is kept."""

import math
import os
from dataclasses import fields, replace

import numpy as np
import torch
from numpy.typing import NDArray

from ssil.data.augment import Transform
from ssil.data.dataset import Dataset, split
from ssil.data.encoded import Encoded, Viewed
from ssil.data.listing import Files, Labels, Listing, Look, Remark
from ssil.data.survey import Survey
from ssil.errors import UserError
from ssil.types import Samples

TESTED = 0.2
"""The part of each class that is for testing, where the source leaves it open."""

BLOCK = 256


def assemble(listing: Listing, survey: Survey, seed: int, threads: int) -> Dataset:
    """The good images of a listing; a class that has none for training is left out."""
    rows = survey.good.nonzero()[0]
    labels = listing.labels[rows]
    tested = _tested(listing, rows, labels, seed)
    trained = np.bincount(labels[~tested], minlength=len(listing.classes))
    remarks = (*listing.remarks, *survey.remarks, *_on_classes(listing, labels, trained))
    if not trained.any():
        reason = f"{remarks[0].path}: {remarks[0].reason}" if remarks else "there are no files"
        raise UserError(f"data: {listing.name} has no image to train on; {reason}")
    number = np.cumsum(trained > 0) - 1

    def part(which: NDArray[np.bool_]) -> Samples:
        chosen = which & (trained[labels] > 0)
        images = Encoded(listing.source, rows[chosen], listing.look, survey.digests, survey.pixels, threads)
        return Samples(images, torch.from_numpy(number[labels[chosen]]))

    names = tuple(name for name, count in zip(listing.classes, trained, strict=True) if count)
    return Dataset(listing.name, part(~tested), part(tested), names, transform(listing.look), remarks=remarks)


def _tested(listing: Listing, rows: Labels, labels: Labels, seed: int) -> NDArray[np.bool_]:
    if listing.tested is not None:
        return listing.tested[rows]
    tested = np.zeros(len(rows), dtype=bool)
    tested[split(torch.from_numpy(labels), TESTED, seed, "test split")[1].numpy()] = True
    return tested


def _on_classes(listing: Listing, labels: Labels, trained: Labels) -> list[Remark]:
    """Remarks on classes that can't be learnt, or not be tested."""
    remarks = []
    good = np.bincount(labels, minlength=len(trained))
    for name, count, all_good in zip(listing.classes, trained.tolist(), good.tolist(), strict=True):
        if not count:
            tests = f", so its {all_good} test image(s) are left out" if all_good else ""
            remarks.append(Remark(name, f"the class has no readable image to train on{tests}"))
        elif all_good == 1 and listing.tested is None:
            remarks.append(Remark(name, "the class has a single image, which is for training", left_out=False))
    return remarks


def transform(look: Look) -> Transform:
    """What is done to a batch after decoding."""
    pad = look.size // 8 if look.augment == "shift" else 0
    flip = look.flip and look.augment != "none"
    return Transform(look.mean, look.std, pad=pad, flip=flip, crop=look.augment == "crop")


def placed(dataset: Dataset, lengths: Labels, in_memory: bool | None) -> Dataset:
    """The set with its images in memory: as pixels if they are always seen alike, else as their bytes.

    Without a wish, they are if they take no more than a quarter of the machine's memory; a store's bytes are not,
    for the system keeps those that are used.
    """
    train, test = (part.images for part in (dataset.train, dataset.test))
    assert isinstance(train, Encoded)
    assert isinstance(test, Encoded)
    as_bytes = dataset.transform.crop
    need = int(lengths[train.rows].sum() + lengths[test.rows].sum())
    if not as_bytes:
        need = (len(train) + len(test)) * math.prod(train.shape)
    fits = need <= _memory() / 4 and (isinstance(train.source, Files) or not as_bytes)
    if not (fits if in_memory is None else in_memory):
        return dataset
    if as_bytes:
        for images in (train, test):
            images.hold(torch.arange(len(images)), "bytes")
        return dataset
    seen = Samples(_viewed(train), dataset.train.labels), Samples(_viewed(test), dataset.test.labels)
    return replace(dataset, train=seen[0], test=seen[1])


def _viewed(images: Encoded) -> Viewed:
    views = torch.empty(len(images), *images.shape, dtype=torch.uint8)
    for block in torch.arange(len(images)).split(BLOCK):
        views[block] = images.fetch(block)
    return Viewed(**{part.name: getattr(images, part.name) for part in fields(images)}, views=views)


def _memory() -> int:
    """The machine's memory in bytes; where the system doesn't tell, 8 GB."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 8 << 30
