"""What a source of image files lists, before any of them is decoded."""

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ssil.core.errors import UserError

Bytes = bytes | memoryview
Flags = NDArray[np.bool_]
Labels = NDArray[np.int64]

CROP_FROM = 128
LARGEST_FILE = 1 << 30


class Remark(NamedTuple):
    """A line of the report on a data set's files: what was left out, or (`left_out` false) what deserves a look."""

    path: str
    reason: str
    left_out: bool = True


def stop_at(remarks: Sequence[Remark]) -> None:
    """What `--strict` does: refuse to go on if there is anything to remark on."""
    if remarks:
        path, reason, _ = remarks[0]
        raise UserError(f"data: {path}: {reason} (the first of {len(remarks):,}; --strict stops at any)")


def plain(name: str) -> str:
    r"""A name that can be written as UTF-8, whatever bytes a file system gave it.

    >>> plain("caf\udce9.jpg") == "caf\ufffd.jpg"
    True
    """
    return re.sub(r"[\ud800-\udfff]", "\ufffd", name)


def why(error: OSError) -> str:
    """Why something can't be read, in the words of a remark."""
    return (error.strerror or str(error)).lower()


class Source(Protocol):
    """Encoded images by index."""

    @property
    def names(self) -> Sequence[str]:
        """What a report calls each of them: paths, for files."""
        ...

    def read(self, index: int) -> Bytes:
        """The encoded image. An OSError if it can't be had."""
        ...

    def __len__(self) -> int: ...


def content(path: Path) -> bytes:
    """All of a file. An OSError, if it can't be had or can't be an image."""
    try:
        with open(path, "rb", buffering=0, opener=_at_once) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise OSError("not a regular file")
            if status.st_size > LARGEST_FILE:
                raise OSError(f"{status.st_size:,} bytes: too large for an image file")
            return file.read()
    except ValueError as error:  # no path at all: it has a NUL
        raise OSError(str(error)) from error


def _at_once(path: str, flags: int) -> int:
    """Opened without waiting for anybody to write, should it be a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


@dataclass(frozen=True)
class Files:
    """Image files: paths relative to a root (absolute ones stay what they are)."""

    root: Path
    names: tuple[str, ...]

    def read(self, index: int) -> bytes:
        """The file's content."""
        return content(self.root / self.names[index])

    def __len__(self) -> int:
        return len(self.names)


CENTRE = 224 / 256
"""The part of the short side that a test view of a photograph shows: as if resized to 256 and cropped to 224."""


@dataclass(frozen=True, repr=False)
class Preprocessing:
    """How a set's pictures are to be seen: size, channels, and the kind of training views.

    `augment` is "crop" (a random part, resized: photographs), "shift" (the whole picture, moved a little), "none", or
    "auto": crops from 128 pixels on, shifts below, where of a crop little would be left.
    """

    size: int
    channels: int = 3
    augment: str = "crop"
    flip: bool = True
    mean: tuple[float, ...] = (0.485, 0.456, 0.406)
    std: tuple[float, ...] = (0.229, 0.224, 0.225)

    def __repr__(self) -> str:
        # Fingerprints of data sets and stores on disk are computed from this text, "Look" included: never change it.
        return f"Look({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    @property
    def centre(self) -> float:
        """The side of the square that is seen in testing, as a part of the picture's short side."""
        return CENTRE if self.augment == "crop" else 1.0

    def resolved(self) -> "Preprocessing":
        """With "auto" replaced by what it comes to at this size."""
        return self if self.augment != "auto" else replace(self, augment="crop" if self.size >= CROP_FROM else "shift")


@dataclass(frozen=True, eq=False)
class ImageIndex:
    """Labelled encoded images: where they are, their labels (into `classes`), which are for testing.

    `tested` is None where the source leaves it open: then a seeded fifth of each class is. `keys`, where there are any,
    are the source's own identifiers of the classes (wnids, landmark ids).
    """

    name: str
    source: Source
    labels: Labels
    classes: tuple[str, ...]
    look: Preprocessing
    tested: Flags | None = None
    remarks: tuple[Remark, ...] = ()
    keys: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)
