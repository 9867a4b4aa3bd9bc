"""The index of a set of encoded images: where they are, their labels and classes; no image is decoded here."""

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ssil.core.errors import UserError, did_you_mean
from ssil.core.network_input import (
    CENTRE,
    IMAGENET_MEAN,
    IMAGENET_STD,
    MIN_CROP_SIZE,
    Interpolation,
    NetworkInput,
)

Bytes = bytes | memoryview
Flags = NDArray[np.bool_]
Labels = NDArray[np.int64]
Rows = NDArray[np.int64]
"""Positions of images in a source."""

MAX_FILE_BYTES = 1 << 30


class Remark(NamedTuple):
    """A line of the report on a data set's files: what was left out, or (`left_out` is False) only looks odd."""

    path: str
    reason: str
    left_out: bool = True


def refuse_remarks(remarks: Sequence[Remark]) -> None:
    """Raise UserError if there is any remark, as `--strict` asks."""
    if remarks:
        path, reason, _ = remarks[0]
        raise UserError(f"data: {path}: {reason} (the first of {len(remarks):,}; --strict stops at any)")


def as_utf8(name: str) -> str:
    r"""Return a file name with bytes that are not UTF-8 replaced.

    >>> as_utf8("caf\udce9.jpg") == "caf\ufffd.jpg"
    True
    """
    return re.sub(r"[\ud800-\udfff]", "\ufffd", name)


def error_reason(error: OSError) -> str:
    """Return why a file can't be read, as the reason of a remark."""
    return (error.strerror or str(error)).lower()


def read_text(path: Path) -> str:
    """Return the content of a UTF-8 file; raise UserError if it can't be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"data: {path} can't be read as text: {error}") from error


def read_image_file(path: Path) -> bytes:
    """Return the content of a file; raise OSError if it can't be read, is no regular file, or is above 1 GiB."""
    try:
        with open(path, "rb", buffering=0, opener=_open_without_waiting) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise OSError("not a regular file")
            if status.st_size > MAX_FILE_BYTES:
                raise OSError(f"{status.st_size:,} bytes: too large for an image file")
            return file.read()
    except ValueError as error:  # the path contains a NUL character
        raise OSError(str(error)) from error


def _open_without_waiting(path: str, flags: int) -> int:
    """Open a file; a named pipe is opened without waiting for somebody to write to it."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


class Source(Protocol):
    """Encoded images by position."""

    @property
    def names(self) -> Sequence[str]:
        """The name of each image in remarks: for files, the path."""
        ...

    def read(self, row: int) -> Bytes:
        """Return the encoded image; raise OSError if it can't be read."""
        ...

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Files:
    """A source of image files, by paths relative to a root; absolute paths stay what they are."""

    root: Path
    names: tuple[str, ...]

    def read(self, row: int) -> bytes:
        """Return the file's content."""
        return read_image_file(self.root / self.names[row])

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, eq=False)
class SourceSubset:
    """Some images of another source."""

    source: Source
    rows: Rows

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names in the other source."""
        return tuple(self.source.names[row] for row in self.rows.tolist())

    def read(self, row: int) -> Bytes:
        """Return the encoded image."""
        return self.source.read(int(self.rows[row]))

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, repr=False)
class Preprocessing:
    """How a set's images become network input: size, channels, kind of training views, normalisation.

    `augment` is "crop" (random resized crops, for photographs), "shift" (the whole image, shifted a little), "none", or
    "auto": crops from a size of 128 pixels on, shifts below, where little would be left of a crop.
    """

    size: int
    channels: int = 3
    augment: str = "crop"
    flip: bool = True
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD

    def __repr__(self) -> str:
        # Fingerprints of data sets and stores on disk are computed from this text, "Look" included: never change it.
        return f"Look({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    @property
    def centre(self) -> float | None:
        """The side of the square in a test view, as a fraction of the image's short side; None for the whole image."""
        return CENTRE if self.augment == "crop" else 1.0

    @property
    def interpolation(self) -> Interpolation:
        """How images are resized."""
        return "bilinear"

    def for_weights(self, needed: NetworkInput | None) -> "Preprocessing":
        """Return the same with the normalisation, the interpolation and the crop that pretrained weights need."""
        if needed is None:
            return self
        kept = self.size, self.channels, self.augment, self.flip
        return PreprocessingForWeights(*kept, needed.mean, needed.std, input=needed)

    def resolved(self) -> Self:
        """Return the same with "auto" replaced by the kind of views that it stands for at this size."""
        if self.augment != "auto":
            return self
        return replace(self, augment="crop" if self.size >= MIN_CROP_SIZE else "shift")


@dataclass(frozen=True, repr=False)
class PreprocessingForWeights(Preprocessing):
    """Preprocessing whose interpolation and test view are those of pretrained weights."""

    input: NetworkInput = field(kw_only=True)

    @property
    def centre(self) -> float | None:
        """The side of the square in a test view, as a fraction of the image's short side; None for the whole image."""
        return None if self.input.crop == "whole" else self.input.crop

    @property
    def interpolation(self) -> Interpolation:
        """How images are resized."""
        return self.input.interpolation


DEFAULT_PREPROCESSING = Preprocessing(64, augment="auto")
"""For images of the user's own."""


@dataclass(frozen=True, eq=False)
class ImageIndex:
    """A source of encoded images, with labels (positions in `classes`) and the images that are for testing.

    `is_test` is None where the source has no test part: then a seeded fifth of each class is for testing. `keys`, if
    not empty, are the source's own identifiers of the classes (wnids, landmark ids).
    """

    name: str
    source: Source
    labels: Labels
    classes: tuple[str, ...]
    preprocessing: Preprocessing
    is_test: Flags | None = None
    remarks: tuple[Remark, ...] = ()
    keys: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)

    def counts(self, which: Flags | None = None) -> Labels:
        """Return the number of images of each class, or of those for which `which` is true."""
        return np.bincount(self.labels if which is None else self.labels[which], minlength=len(self.classes))

    def test_flags(self) -> Flags:
        """Return which images the source sets aside for testing: none where it has no test part."""
        return np.zeros(len(self), dtype=bool) if self.is_test is None else self.is_test

    def take(self, rows: Rows) -> "ImageIndex":
        """Return the index of some of the images; part of a set of files is a set of files."""
        if len(rows) == len(self):
            return self
        part = SourceSubset(self.source, rows)
        source = Files(self.source.root, part.names) if isinstance(self.source, Files) else part
        return replace(
            self, source=source, labels=self.labels[rows], is_test=None if self.is_test is None else self.is_test[rows]
        )

    def pick(self, labels: Sequence[int]) -> "ImageIndex":
        """Return the classes with these labels, renumbered in this order; their images keep their order."""
        number = np.full(len(self.classes), -1, dtype=np.int64)
        number[list(labels)] = np.arange(len(labels))
        classes, keys = (tuple(names[label] for label in labels if names) for names in (self.classes, self.keys))
        renumbered = replace(self, labels=number[self.labels], classes=classes, keys=keys)
        return renumbered.take((renumbered.labels >= 0).nonzero()[0])

    def first_classes(self, count: int) -> "ImageIndex":
        """Return the first `count` classes; raise UserError if there are fewer."""
        if not 1 <= count <= len(self.classes):
            raise UserError(f"classes: {count} must be between 1 and {len(self.classes)}, all that {self.name} has")
        return self.pick(range(count))

    def listed_classes(self, path: Path) -> "ImageIndex":
        """Return the classes that a text file lists, one name or key (wnid) per line, in the file's order."""
        lines = [line.strip() for line in read_text(path).splitlines() if line.strip()]
        if not lines:
            raise UserError(f"{path} lists no class; write one class name per line")
        known = {name: label for names in (self.keys, self.classes) for label, name in enumerate(names)}
        chosen: dict[int, str] = {}
        for line in lines:
            if line not in known:
                raise UserError(f"{path}: {line!r} is no class of {self.name}; {self._similar_classes(line)}")
            if other := chosen.get(known[line]):
                raise UserError(f"{path}: {other!r} and {line!r} are the same class of {self.name}; list it once")
            chosen[known[line]] = line
        return self.pick(list(chosen))

    def _similar_classes(self, name: str) -> str:
        known = (*self.classes, *self.keys)
        if longer := [one for one in known if one.startswith(name)][:3]:
            return f"did you mean {' or '.join(map(repr, longer))}?"
        return did_you_mean(name, known, f"a class is, for example, {known[0]!r}", count=3)
