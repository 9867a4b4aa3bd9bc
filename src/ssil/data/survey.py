"""Every image of a set is decoded once before it is used: which are good, how large, with which content."""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import feather

from ssil.data.cache import aside, cache_dir
from ssil.data.decode import UnreadableError, whole
from ssil.data.encoded import Digests, pool
from ssil.data.listing import Bytes, Files, Remark, Source
from ssil.data.sources.subset import Part
from ssil.errors import UserError

Told = Callable[[int, int], None]
"""Called now and then with how many are done, of how many."""

BLOCK = 256
SAVED_EVERY = 60.0
NOTHING = b"\0" * 16
UNREAD = -1


class Found(NamedTuple):
    """What decoding found: size, length in bytes, the starts (16 bytes) of SHA-256 over bytes and pixels; or a reason.

    A good image has no reason.
    """

    width: int = 0
    height: int = 0
    length: int = 0
    digest: bytes = NOTHING
    pixels: bytes = NOTHING
    reason: str = ""


def examine(data: Bytes) -> Found:
    """Decode an image completely; an `UnreadableError` says why it can't be."""
    picture = whole(data)
    height, width, _ = picture.shape
    pixels = sha256(repr(picture.shape).encode())
    pixels.update(np.ascontiguousarray(picture).data)
    return Found(width, height, len(data), sha256(data).digest()[:16], pixels.digest()[:16])


@dataclass(frozen=True, eq=False)
class Survey:
    """What was found of each row of a source."""

    lengths: NDArray[np.int64]
    digests: Digests
    pixels: Digests
    good: NDArray[np.bool_]
    remarks: tuple[Remark, ...] = ()
    """Of those that are not good."""

    def take(self, rows: NDArray[np.int64]) -> "Survey":
        """Of some rows, all of which are good."""
        return Survey(self.lengths[rows], self.digests[rows], self.pixels[rows], self.good[rows])


def survey(source: Source, told: Told | None = None, strict: bool = False, threads: int | None = None) -> Survey:
    """Examine every image; a file that was examined before, and has not changed since, is not read again.

    A source that has a `survey` of its own, as a store has, is not examined.
    """
    if known := _known(source):
        return known
    notes = Notes(source)
    todo = [row for row in range(len(source)) if row not in notes.found]
    workers = pool(threads or os.cpu_count() or 1)
    for start in range(0, len(todo), BLOCK):
        block = todo[start : start + BLOCK]
        for row, found in zip(block, workers.map(lambda row: _look(source, row), block), strict=True):
            notes.found[row] = found
            if strict and found.reason:
                raise UserError(f"data: {source.names[row]}: {found.reason} (--strict stops at the first such file)")
        notes.save_now_and_then()
        if told:
            told(len(source) - len(todo) + start + len(block), len(source))
    if todo:
        notes.save()
    return _survey(source.names, [notes.found[row] for row in range(len(source))])


def _known(source: Source) -> Survey | None:
    if isinstance(source, Part):
        whole = _known(source.source)
        return whole and whole.take(source.indices)
    own: Callable[[], Survey] | None = getattr(source, "survey", None)
    return own() if own else None


def _look(source: Source, row: int) -> Found:
    try:
        return examine(source.read(row))
    except UnreadableError as error:
        return Found(reason=str(error))
    except OSError as error:
        return Found(length=UNREAD, reason=(error.strerror or str(error)).lower())


def _survey(names: Sequence[str], found: list[Found]) -> Survey:
    digests, pixels = (
        np.frombuffer(b"".join(column), dtype=np.uint8).reshape(-1, 16)
        for column in ([one.digest for one in found], [one.pixels for one in found])
    )
    return Survey(
        np.array([one.length for one in found], dtype=np.int64),
        digests,
        pixels,
        np.array([not one.reason for one in found], dtype=bool),
        tuple(Remark(name, one.reason) for name, one in zip(names, found, strict=True) if one.reason),
    )


Stamp = tuple[int, int]
"""A file's size, and the time of its last change."""


class Notes:
    """What is known of a source's rows: of files, what earlier surveys of the same folder noted in the cache."""

    def __init__(self, source: Source) -> None:
        self.source, self.found, self.known = source, dict[int, Found](), dict[str, tuple[Stamp, Found]]()
        self.saved = time.monotonic()
        if isinstance(source, Files):
            self.path = _path(source)
            self.known = _read(self.path)
            for row, name in enumerate(source.names):
                stamp, found = self.known.get(name, (None, Found()))
                if stamp and stamp == _stamp(source, name):
                    self.found[row] = found

    def save_now_and_then(self) -> None:
        """So that little is lost if the survey is stopped."""
        if time.monotonic() - self.saved > SAVED_EVERY:
            self.save()

    def save(self) -> None:
        """Keep what was found; not what could not be read at all, which may be mended without a trace."""
        self.saved = time.monotonic()
        if not isinstance(self.source, Files):
            return
        for row, found in self.found.items():
            name = self.source.names[row]
            if found.length != UNREAD and (stamp := _stamp(self.source, name)):
                self.known[name] = stamp, found
        with suppress(OSError):  # a cache that can't be written costs time only
            _write(self.path, self.known)


def _path(source: Files) -> Path:
    return cache_dir() / "surveys" / f"{sha256(str(source.root.resolve()).encode()).hexdigest()[:16]}.arrow"


def _stamp(source: Files, name: str) -> Stamp | None:
    try:
        status = os.stat(source.root / name)  # noqa: PTH116 (half the time)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


COLUMNS = ("name", "size", "changed", *Found._fields)


def _write(path: Path, known: dict[str, tuple[Stamp, Found]]) -> None:
    rows = [(name, *stamp, *found) for name, (stamp, found) in known.items()]
    columns = zip(*rows, strict=True)
    with aside(path) as file:
        feather.write_feather(pa.table(dict(zip(COLUMNS, map(list, columns), strict=True))), file)


def _read(path: Path) -> dict[str, tuple[Stamp, Found]]:
    try:
        rows = feather.read_table(path, columns=list(COLUMNS)).to_pydict()
    except (OSError, pa.ArrowException, KeyError):
        return {}
    return {
        name: ((size, changed), Found(*found))
        for name, size, changed, *found in zip(*(rows[column] for column in COLUMNS), strict=True)
    }
