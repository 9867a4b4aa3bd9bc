"""From an image index and the validation of its files to a data set: the good images, split and perhaps in memory."""

import math
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from ssil.core.errors import UserError
from ssil.core.randomness import Randomness
from ssil.core.samples import Samples
from ssil.data.augmentation import Transform
from ssil.data.dataset import Dataset, split
from ssil.data.encoded_images import Encoded
from ssil.data.file_validation import FileValidation
from ssil.data.image_index import Files, Flags, ImageIndex, Labels, Preprocessing, Remark, Rows, as_utf8

TEST_FRACTION = 0.2
"""The fraction of each class that is for testing, where the source has no test part."""


def assemble(
    index: ImageIndex, validation: FileValidation, seed: int, threads: int, max_per_class: int | None = None
) -> Dataset:
    """Return the data set of an index's good images; a class without training images is left out.

    Args:
        index: The images, labels and classes.
        validation: The results for the index's files.
        seed: The seed of the test split, where the source has none, and of the choice of `max_per_class` images.
        threads: The number of threads that decode.
        max_per_class: The largest number of training images per class.
    """
    rows = validation.good.nonzero()[0]
    labels, names = index.labels[rows], index.source.names
    is_test = index.is_test[rows] if index.is_test is not None else _test_split(labels, index.classes, seed)
    is_train = ~is_test if max_per_class is None else _at_most(~is_test, labels, index.classes, max_per_class, seed)
    kept = np.bincount(labels[is_train], minlength=len(index.classes)) > 0
    remarks = (
        *index.remarks,
        *validation.remarks(names),
        *class_remarks(index, validation),
        *(Remark(as_utf8(names[row]), "nothing of its class to train on") for row in rows[~kept[labels]]),
        *_leaked(index, validation, rows[is_train], rows[is_test]),
    )
    if not kept.any():
        first = f"the first remark is {remarks[0].path}: {remarks[0].reason}" if remarks else "there are no files"
        where = f" below {index.source.root} (--data-root)" if isinstance(index.source, Files) else ""
        raise UserError(f"data: {index.name} has no image to train on{where}; {first}")
    new_labels = np.cumsum(kept) - 1
    preprocessing = index.preprocessing.resolved()

    def samples(which: Flags) -> Samples:
        chosen = which & kept[labels]
        images = Encoded(index.source, rows[chosen], preprocessing, validation.digests, validation.pixels, threads)
        return Samples(images, torch.from_numpy(new_labels[labels[chosen]]))

    classes = tuple(name for name, stays in zip(index.classes, kept, strict=True) if stays)
    transform = make_transform(preprocessing)
    return Dataset(index.name, samples(is_train), samples(is_test), classes, transform, remarks=remarks)


def _test_split(labels: Labels, classes: tuple[str, ...], seed: int) -> Flags:
    is_test = np.zeros(len(labels), dtype=bool)
    is_test[split(torch.from_numpy(labels), TEST_FRACTION, seed, "test split", classes)[1].numpy()] = True
    return is_test


def _at_most(which: Flags, labels: Labels, classes: tuple[str, ...], count: int, seed: int) -> Flags:
    """Return at most `count` of the images per class for which `which` is true, drawn by the seed."""
    chosen, members = np.zeros(len(which), dtype=bool), which.nonzero()[0]
    members = members[np.argsort(labels[members], kind="stable")]
    sizes = np.bincount(labels[members], minlength=len(classes))
    for name, group in zip(classes, np.split(members, np.cumsum(sizes)[:-1]), strict=True):
        order = torch.randperm(len(group), generator=Randomness(seed).at("max per class", name))
        chosen[group[order[:count].numpy()]] = True
    return chosen


def class_remarks(index: ImageIndex, validation: FileValidation) -> list[Remark]:
    """Return remarks on classes that have no good images, or only one, to train on, or none to test on."""
    good, is_test = validation.good, index.test_flags()
    counts = (index.counts(which).tolist() for which in (good & ~is_test, good & is_test, is_test))
    remarks = []
    for name, train, test, listed_tests in zip(index.classes, *counts, strict=True):
        if not train:
            remarks.append(Remark(name, "the class has no readable image to train on", left_out=False))
        elif listed_tests and not test:
            remarks.append(Remark(name, "the class has no readable image to test on", left_out=False))
        elif train == 1:
            note = "which is for training" if index.is_test is None else "to train on"
            remarks.append(Remark(name, f"the class has a single image {note}", left_out=False))
    return remarks


def _leaked(index: ImageIndex, validation: FileValidation, train: Rows, test: Rows) -> list[Remark]:
    """Return a remark on test images that are also among the training images, byte for byte."""
    trained, tested = (validation.digests[rows, :8].view(np.uint64).ravel() for rows in (train, test))
    trained = np.sort(trained)  # and searched: np.isin takes seconds for a million
    both = test[np.searchsorted(trained, tested, "right") > np.searchsorted(trained, tested)]
    if not len(both):
        return []
    reason = f"the first of {len(both):,} test image(s) that are also trained on, byte for byte"
    return [Remark(as_utf8(index.source.names[int(both[0])]), reason, left_out=False)]


def make_transform(preprocessing: Preprocessing) -> Transform:
    """Return the transform of batches after decoding."""
    augment = preprocessing.augment
    pad = preprocessing.size // 8 if augment == "shift" else 0
    flip = preprocessing.flip and augment != "none"
    return Transform(preprocessing.mean, preprocessing.std, pad=pad, flip=flip, crop=augment == "crop")


def to_memory(dataset: Dataset, lengths: Labels, in_memory: bool | None) -> Dataset:
    """Return the data set with its images in memory: decoded if no random crop is used, else as encoded bytes.

    Args:
        dataset: A set of encoded images.
        lengths: The number of bytes of each row of their source.
        in_memory: Whether to do it; by default if the images take at most a quarter of the machine's memory. Encoded
            bytes of a store are then left to the system's file cache.
    """
    train, test = dataset.train.images, dataset.test.images
    assert isinstance(train, Encoded)
    assert isinstance(test, Encoded)
    as_bytes = dataset.transform.crop
    need = int(lengths[train.rows].sum() + lengths[test.rows].sum())
    if not as_bytes:
        need = (len(train) + len(test)) * math.prod(train.shape)
    fits = need <= _memory_size() / 4 and (isinstance(train.source, Files) or not as_bytes)
    if not (fits if in_memory is None else in_memory):
        return dataset
    held = (images.in_memory() if as_bytes else images.decoded() for images in (train, test))
    return replace(
        dataset, train=Samples(next(held), dataset.train.labels), test=Samples(next(held), dataset.test.labels)
    )


def _memory_size() -> int:
    """Return the bytes of memory that this process may use; 8 GB where the system does not tell."""
    size = 8 << 30
    with suppress(ValueError, OSError, AttributeError):
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(ValueError, OSError):  # a container's limit, if it has one
        size = min(size, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return size
