"""From a listing of encoded images to a data set: what is good, how it is split, where it is kept."""

import math
import os
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import torch

from ssil.core.errors import UserError
from ssil.core.randomness import Randomness
from ssil.core.samples import Samples
from ssil.data.augmentation import Transform
from ssil.data.dataset import Dataset, split
from ssil.data.encoded_images import Encoded, Viewed
from ssil.data.file_validation import FileValidation
from ssil.data.image_index import Files, Flags, ImageIndex, Labels, Preprocessing, Remark, plain

TESTED = 0.2
"""The part of each class that is for testing, where the source leaves it open."""

BLOCK = 256


def assemble(listing: ImageIndex, survey: FileValidation, seed: int, threads: int, most: int | None = None) -> Dataset:
    """The good images of a listing, at most so many a class to train on; a class that has none is left out."""
    rows = survey.good.nonzero()[0]
    labels = listing.labels[rows]
    tested = _tested(listing, rows, labels, seed)
    trained = ~tested if most is None else _few(~tested, labels, listing.classes, most, seed)
    kept = np.bincount(labels[trained], minlength=len(listing.classes)) > 0
    remarks = (
        *listing.remarks,
        *survey.remarks(listing.source.names),
        *on_classes(listing, survey),
        *(Remark(plain(listing.source.names[row]), "nothing of its class to train on") for row in rows[~kept[labels]]),
        *_leaked(listing, survey, rows[trained], rows[tested]),
    )
    if not kept.any():
        first = f"the first remark is {remarks[0].path}: {remarks[0].reason}" if remarks else "there are no files"
        where = f" below {listing.source.root} (--data-root)" if isinstance(listing.source, Files) else ""
        raise UserError(f"data: {listing.name} has no image to train on{where}; {first}")
    number = np.cumsum(kept) - 1
    look = listing.look.resolved()

    def part(which: Flags) -> Samples:
        chosen = which & kept[labels]
        images = Encoded(listing.source, rows[chosen], look, survey.digests, survey.pixels, threads)
        return Samples(images, torch.from_numpy(number[labels[chosen]]))

    names = tuple(name for name, stays in zip(listing.classes, kept, strict=True) if stays)
    return Dataset(listing.name, part(trained), part(tested), names, transform(look), remarks=remarks)


def _tested(listing: ImageIndex, rows: Labels, labels: Labels, seed: int) -> Flags:
    if listing.tested is not None:
        return listing.tested[rows]
    tested = np.zeros(len(rows), dtype=bool)
    tested[split(torch.from_numpy(labels), TESTED, seed, "test split", listing.classes)[1].numpy()] = True
    return tested


def _few(which: Flags, labels: Labels, names: tuple[str, ...], most: int, seed: int) -> Flags:
    """Of those, at most so many a class, drawn by seed."""
    few, members = np.zeros(len(which), dtype=bool), which.nonzero()[0]
    members = members[np.argsort(labels[members], kind="stable")]
    sizes = np.bincount(labels[members], minlength=len(names))
    for name, group in zip(names, np.split(members, np.cumsum(sizes)[:-1]), strict=True):
        order = torch.randperm(len(group), generator=Randomness(seed).at("max per class", name))
        few[group[order[:most].numpy()]] = True
    return few


def on_classes(listing: ImageIndex, survey: FileValidation) -> list[Remark]:
    """Remarks on classes that can't be learnt, or not be tested."""
    labels, good = listing.labels, survey.good
    count = len(listing.classes)
    tested = np.zeros(len(labels), dtype=bool) if listing.tested is None else listing.tested
    trains, tests, listed = (
        np.bincount(labels[which], minlength=count).tolist() for which in (good & ~tested, good & tested, tested)
    )
    remarks = []
    for name, train, test, listed_tests in zip(listing.classes, trains, tests, listed, strict=True):
        if not train:
            remarks.append(Remark(name, "the class has no readable image to train on", left_out=False))
        elif listed_tests and not test:
            remarks.append(Remark(name, "the class has no readable image to test on", left_out=False))
        elif train == 1:
            note = "which is for training" if listing.tested is None else "to train on"
            remarks.append(Remark(name, f"the class has a single image {note}", left_out=False))
    return remarks


def _leaked(listing: ImageIndex, survey: FileValidation, train: Labels, test: Labels) -> list[Remark]:
    """A remark on test images that are also among the training images, byte for byte."""
    seen, request = (survey.digests[rows, :8].view(np.uint64).ravel() for rows in (train, test))
    seen = np.sort(seen)  # and searched: np.isin takes seconds for a million
    both = test[np.searchsorted(seen, request, "right") > np.searchsorted(seen, request)]
    if not len(both):
        return []
    reason = f"the first of {len(both):,} test image(s) that are also trained on, byte for byte"
    return [Remark(plain(listing.source.names[int(both[0])]), reason, left_out=False)]


def transform(look: Preprocessing) -> Transform:
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
    held = (images.in_memory() if as_bytes else viewed(images) for images in (train, test))
    parts = (Samples(images, part.labels) for images, part in zip(held, (dataset.train, dataset.test), strict=True))
    return replace(dataset, train=next(parts), test=next(parts))


def viewed(images: Encoded) -> Viewed:
    """All of them decoded, as they are always seen."""
    views = torch.empty(len(images), *images.shape, dtype=torch.uint8)
    for block in torch.arange(len(images)).split(BLOCK):
        views[block] = images.fetch(block)
    return Viewed(**{part.name: getattr(images, part.name) for part in fields(images)}, views=views)


def _memory() -> int:
    """The bytes of memory that this process may use; where the system doesn't tell, 8 GB."""
    most = 8 << 30
    with suppress(ValueError, OSError, AttributeError):
        most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(ValueError, OSError):  # a container's limit, if it has one
        most = min(most, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return most
