"""A part of a listing: some of its classes, fewer images of each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ssil.core.errors import UserError, did_you_mean
from ssil.data.image_index import Bytes, Files, ImageIndex, Source
from ssil.data.sources.file_tree import text

Indices = NDArray[np.int64]


def only(listing: ImageIndex, wanted: Path) -> ImageIndex:
    """The classes that a text file lists, one a line, in its order: by name or by key (a wnid)."""
    known = {name: label for called in (listing.keys, listing.classes) for label, name in enumerate(called)}
    labels: dict[int, str] = {}
    for line in _lines(wanted):
        if line not in known:
            raise UserError(f"{wanted}: {line!r} is no class of {listing.name}; {_cure(line, listing)}")
        if known[line] in labels:
            both = f"{labels[known[line]]!r} and {line!r}"
            raise UserError(f"{wanted}: {both} are the same class of {listing.name}; list it once")
        labels[known[line]] = line
    return pick(listing, list(labels))


def first(listing: ImageIndex, count: int) -> ImageIndex:
    """The first classes."""
    if not 1 <= count <= len(listing.classes):
        raise UserError(f"classes: {count} must be between 1 and {len(listing.classes)}, all that {listing.name} has")
    return pick(listing, range(count))


def pick(listing: ImageIndex, order: Sequence[int]) -> ImageIndex:
    """The classes with these labels, numbered anew in this order; their images stay in theirs."""
    number = np.full(len(listing.classes), -1, dtype=np.int64)
    number[list(order)] = np.arange(len(order))
    classes, keys = (tuple(those[label] for label in order if those) for those in (listing.classes, listing.keys))
    renumbered = replace(listing, labels=number[listing.labels], classes=classes, keys=keys)
    return _rows(renumbered, (renumbered.labels >= 0).nonzero()[0])


@dataclass(frozen=True, eq=False)
class Part:
    """Some of a source's images."""

    source: Source
    indices: Indices

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What the source calls them."""
        return tuple(self.source.names[index] for index in self.indices.tolist())

    def read(self, index: int) -> Bytes:
        """The encoded image."""
        return self.source.read(int(self.indices[index]))

    def __len__(self) -> int:
        return len(self.indices)


def _rows(listing: ImageIndex, stay: Indices) -> ImageIndex:
    """The images at these indices; of files, files."""
    if len(stay) == len(listing):
        return listing
    part = Part(listing.source, stay)
    source = Files(listing.source.root, part.names) if isinstance(listing.source, Files) else part
    tested = None if listing.tested is None else listing.tested[stay]
    return replace(listing, source=source, labels=listing.labels[stay], tested=tested)


def _lines(path: Path) -> list[str]:
    lines = [line.strip() for line in text(path).splitlines() if line.strip()]
    if not lines:
        raise UserError(f"{path} lists no class; write a class name a line")
    return lines


def _cure(line: str, listing: ImageIndex) -> str:
    called = (*listing.classes, *listing.keys)
    longer = [name for name in called if name.startswith(line)][:3]
    if longer:
        return f"did you mean {' or '.join(map(repr, longer))}?"
    return did_you_mean(line, called, f"a class is, say, {called[0]!r}", count=3)
