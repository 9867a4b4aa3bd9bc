"""What a source of image files lists, before any of them is decoded."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Bytes = bytes | memoryview
Flags = NDArray[np.bool_]
Labels = NDArray[np.int64]

CROP_FROM = 128


class Remark(NamedTuple):
    """A line of the report on a data set's files: what was left out, or (`left_out` false) what deserves a look."""

    path: str
    reason: str
    left_out: bool = True


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


def _at_once(path: str, flags: int) -> int:
    """Opened without waiting: a pipe is empty, it doesn't stop everything."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


@dataclass(frozen=True)
class Files:
    """Image files: paths relative to a root (absolute ones stay what they are)."""

    root: Path
    names: tuple[str, ...]

    def read(self, index: int) -> bytes:
        """The file's content."""
        with open(self.root / self.names[index], "rb", buffering=0, opener=_at_once) as file:
            return file.read()

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class Look:
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

    def views(self, size: int) -> str:
        """The kind of training views at this size."""
        return self.augment if self.augment != "auto" else "crop" if size >= CROP_FROM else "shift"


@dataclass(frozen=True, eq=False)
class Listing:
    """Labelled encoded images: where they are, their labels (into `classes`), which are for testing.

    `tested` is None where the source leaves it open: then a seeded fifth of each class is. `keys`, where there are any,
    are the source's own identifiers of the classes (wnids, landmark ids).
    """

    name: str
    source: Source
    labels: Labels
    classes: tuple[str, ...]
    look: Look
    tested: Flags | None = None
    remarks: tuple[Remark, ...] = ()
    keys: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)
