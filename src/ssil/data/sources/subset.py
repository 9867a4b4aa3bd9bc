"""A part of a listing: some of its classes, fewer images of each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ssil.data.listing import Bytes, Files, Listing, Source
from ssil.errors import UserError
from ssil.randomness import Randomness

Indices = NDArray[np.int64]


def only(listing: Listing, wanted: Path) -> Listing:
    """The classes that a text file lists, one a line, in its order: by name, by key (a wnid), or by number from 0.

    Where names or keys are numbers themselves, a line means those.
    """
    known = _known(listing)
    labels: dict[int, str] = {}
    for line in _lines(wanted):
        if line not in known:
            raise UserError(f"{wanted}: {line!r} is no class of {listing.name}; {_cure(line, listing)}")
        if known[line] in labels:
            both = f"{labels[known[line]]!r} and {line!r}"
            raise UserError(f"{wanted}: {both} are the same class of {listing.name}; list it once")
        labels[known[line]] = line
    return pick(listing, list(labels))


def first(listing: Listing, count: int) -> Listing:
    """The first classes."""
    if not 1 <= count <= len(listing.classes):
        raise UserError(f"classes: {count} must be between 1 and {len(listing.classes)}, all that {listing.name} has")
    return pick(listing, range(count))


def limit(listing: Listing, least: int | None, most: int | None, seed: int) -> Listing:
    """The classes with at least so many images, and of each at most so many that are not for testing, drawn by seed."""
    for option, count in (("min_per_class", least), ("max_per_class", most)):
        if count is not None and count < 1:
            raise UserError(f"{option}: {count} must be at least 1")
    if least is not None:
        sizes = np.bincount(listing.labels, minlength=len(listing.classes))
        if sizes.max() < least:
            raise UserError(f"min_per_class: {least} is too many, no class of {listing.name} has over {sizes.max()}")
        listing = pick(listing, (sizes >= least).nonzero()[0].tolist())
    return listing if most is None else _rows(listing, _drawn(listing, most, seed))


def pick(listing: Listing, order: Sequence[int]) -> Listing:
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


def _rows(listing: Listing, stay: Indices) -> Listing:
    """The images at these indices; of files, files."""
    if len(stay) == len(listing):
        return listing
    part = Part(listing.source, stay)
    source = Files(listing.source.root, part.names) if isinstance(listing.source, Files) else part
    tested = None if listing.tested is None else listing.tested[stay]
    return replace(listing, source=source, labels=listing.labels[stay], tested=tested)


def _drawn(listing: Listing, most: int, seed: int) -> Indices:
    """The images for testing, and at most so many others of each class."""
    stay = np.zeros(len(listing), dtype=bool) if listing.tested is None else listing.tested.copy()
    others = (~stay).nonzero()[0]
    others = others[np.argsort(listing.labels[others], kind="stable")]
    sizes = np.bincount(listing.labels[others], minlength=len(listing.classes))
    for name, members in zip(listing.classes, np.split(others, np.cumsum(sizes)[:-1]), strict=True):
        order = torch.randperm(len(members), generator=Randomness(seed).at("max per class", name))
        stay[members[order[:most].numpy()]] = True
    return stay.nonzero()[0]


def _lines(path: Path) -> list[str]:
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} can't be read as a list of classes: {error}") from error
    lines = [line for line in lines if line]
    if not lines:
        raise UserError(f"{path} lists no class; write a class name a line")
    return lines


def _known(listing: Listing) -> dict[str, int]:
    """The label of each class, by all that it may be called."""
    called = (*listing.keys, *listing.classes)
    numbers = () if any(name.isdecimal() for name in called) else map(str, range(len(listing.classes)))
    return {name: label for names in (numbers, listing.keys, listing.classes) for label, name in enumerate(names)}


def _cure(line: str, listing: Listing) -> str:
    called = (*listing.classes, *listing.keys)
    close = [name for name in called if name.startswith(line)][:3] or get_close_matches(line, called)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else f"a class is, say, {called[0]!r}"
