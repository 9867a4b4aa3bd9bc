"""Every image of a set is decoded once before it is used: which are good, and with which content."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import feather

from ssil.core.files import checksum, replacing
from ssil.data.cache import cache_dir
from ssil.data.decode import UnreadableError, whole
from ssil.data.encoded_images import Digests, pool, workers
from ssil.data.image_index import Bytes, Files, Remark, Source, plain, stop_at, why
from ssil.data.sources.class_selection import Part

ProgressCallback = Callable[[int, int], None]
"""Called now and then with how many are done, of how many."""

VERSION = 1  # of the notes in the cache: to be raised when a file's verdict may change
BLOCK = 256
SAVED_EVERY = 60.0
NOTHING = b"\0" * 16


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
class FileValidation:
    """What was found of each row of a source; rows that have a reason are not good."""

    lengths: NDArray[np.int64]
    digests: Digests
    pixels: Digests
    reasons: Mapping[int, str] = field(default_factory=dict)

    @property
    def good(self) -> NDArray[np.bool_]:
        """Which rows are."""
        good = np.ones(len(self.lengths), dtype=bool)
        good[list(self.reasons)] = False
        return good

    def remarks(self, names: Sequence[str]) -> tuple[Remark, ...]:
        """On the rows that are not good."""
        return tuple(Remark(plain(names[row]), reason) for row, reason in sorted(self.reasons.items()))

    def take(self, rows: NDArray[np.int64]) -> "FileValidation":
        """Of some rows."""
        reasons = {new: self.reasons[old] for new, old in enumerate(rows.tolist()) if old in self.reasons}
        return FileValidation(self.lengths[rows], self.digests[rows], self.pixels[rows], reasons)


def survey(
    source: Source,
    on_progress: ProgressCallback | None = None,
    strict: bool = False,
    threads: int | None = None,
    fresh: bool = False,
) -> FileValidation:
    """Examine every image; a file that was examined before, and has not changed since, only if `fresh`.

    A source that has a `survey` of its own, as a store has, is not examined.
    """
    if known := _known(source):
        return known
    notes = _Notes(source, fresh)
    todo = notes.unknown()
    threads = threads or workers()
    try:
        for start in range(0, len(todo), BLOCK):
            block = todo[start : start + BLOCK]
            for row, (stamp, found) in zip(block, pool(threads).map(partial(_look, source), block), strict=True):
                notes.add(row, stamp, found)
                if strict and found.reason:
                    stop_at([Remark(plain(source.names[row]), found.reason)])
            notes.save_now_and_then()
            if on_progress:
                on_progress(len(source) - len(todo) + start + len(block), len(source))
    finally:
        notes.save()
    return notes.survey()


def _known(source: Source) -> FileValidation | None:
    if isinstance(source, Part):
        everything = _known(source.source)
        return everything and everything.take(source.indices)
    own: Callable[[], FileValidation] | None = getattr(source, "survey", None)
    return own() if own else None


Stamp = tuple[int, int]
"""A file's size and the time of its last change, before it was read; (-1, 0) if it can't be told."""

UNKNOWN: Stamp = (-1, 0)


def _look(source: Source, row: int) -> tuple[Stamp, Found]:
    """What is found; nothing is noted of a file that can't be read, for that may be mended without a trace."""
    stamp = _stamp(source, row)
    try:
        return stamp, examine(source.read(row))
    except UnreadableError as error:
        return stamp, Found(reason=str(error))
    except OSError as error:
        return UNKNOWN, Found(reason=why(error))


def _stamp(source: Source, row: int) -> Stamp:
    if not isinstance(source, Files):
        return UNKNOWN
    try:
        status = os.stat(source.root / source.names[row])  # noqa: PTH116 (half the time)
    except (OSError, ValueError):
        return UNKNOWN
    return status.st_size, status.st_mtime_ns


class _Notes:
    """What is found of each row; of files it is also kept in the cache, where the next survey finds it."""

    def __init__(self, source: Source, fresh: bool) -> None:
        self.source = source
        count = len(source)
        self.stamps = np.full((count, 2), UNKNOWN, dtype=np.int64)
        self.lengths = np.full(count, -1, dtype=np.int64)
        self.digests, self.pixels = np.zeros((2, count, 16), dtype=np.uint8)
        self.reasons: dict[int, str] = {}
        self.unsaved: list[int] = []
        self.saved = time.monotonic()
        self.file = _Kept(source.root) if isinstance(source, Files) else None
        if self.file and not fresh:
            self._recall(self.file.read())

    def _recall(self, table: pa.Table) -> None:
        """Take over what is known of files that are as they were."""
        index = {name: at for at, name in enumerate(table["name"].to_pylist())}
        known = ((row, index.get(os.fsencode(name), -1)) for row, name in enumerate(self.source.names))
        stamps = np.stack([table["size"].to_numpy(), table["changed"].to_numpy()], 1)
        same = [(row, at) for row, at in known if at >= 0 and tuple(stamps[at]) == _stamp(self.source, row)]
        rows, ats = np.array(same, dtype=np.int64).reshape(-1, 2).T
        self.lengths[rows] = table["length"].to_numpy()[ats]
        self.digests[rows], self.pixels[rows] = (
            digests(table[name].combine_chunks())[ats] for name in ("digest", "pixels")
        )
        reasons = table["reason"].take(ats).to_pylist()
        self.reasons = {row: reason for row, reason in zip(rows.tolist(), reasons, strict=True) if reason}

    def unknown(self) -> list[int]:
        """The rows that are to be examined."""
        rows: list[int] = (self.lengths < 0).nonzero()[0].tolist()
        return rows

    def add(self, row: int, stamp: Stamp, found: Found) -> None:
        """Note what was found."""
        self.lengths[row] = found.length
        self.digests[row], self.pixels[row] = (np.frombuffer(d, dtype=np.uint8) for d in (found.digest, found.pixels))
        if found.reason:
            self.reasons[row] = found.reason
        if stamp != UNKNOWN:
            self.stamps[row] = stamp
            self.unsaved.append(row)

    def save_now_and_then(self) -> None:
        """So that little is lost if the survey is killed."""
        if time.monotonic() - self.saved > SAVED_EVERY:
            self.save()

    def save(self) -> None:
        """Keep what has not been kept yet; a cache that can't be written costs time only."""
        if self.file and self.unsaved:
            with suppress(OSError):
                self.file.append(self._table(self.unsaved))
        self.unsaved, self.saved = [], time.monotonic()

    def _table(self, rows: list[int]) -> pa.Table:
        columns = {
            "name": [os.fsencode(self.source.names[row]) for row in rows],
            "size": self.stamps[rows, 0],
            "changed": self.stamps[rows, 1],
            "length": self.lengths[rows],
            "digest": [digest.tobytes() for digest in self.digests[rows]],
            "pixels": [digest.tobytes() for digest in self.pixels[rows]],
            "reason": [self.reasons.get(row, "") for row in rows],
        }
        return pa.table(columns, SCHEMA)

    def survey(self) -> FileValidation:
        return FileValidation(self.lengths, self.digests, self.pixels, self.reasons)


SCHEMA = pa.schema(
    {
        "name": pa.binary(),
        "size": pa.int64(),
        "changed": pa.int64(),
        "length": pa.int64(),
        "digest": pa.binary(16),
        "pixels": pa.binary(16),
        "reason": pa.string(),
    }
)


def digests(column: pa.FixedSizeBinaryArray) -> Digests:
    """A column of digests as an array (N, 16), without copying."""
    return np.frombuffer(column.buffers()[1] or b"", dtype=np.uint8).reshape(-1, 16)[: len(column)]


class _Kept:
    """The notes on the files below a folder: tables, each written after the other; of a file the last word counts."""

    MOST = 16
    """Tables, before they are made one."""

    def __init__(self, root: Path) -> None:
        key = checksum(os.fsencode(root.resolve()), 16)
        self.folder = cache_dir() / f"surveys-{VERSION}" / key

    def read(self) -> pa.Table:
        """All of them in one."""
        return pa.concat_tables([SCHEMA.empty_table(), *map(_read, self._paths())])

    def append(self, table: pa.Table) -> None:
        """Write another; when there are many, one in place of all."""
        before = self._paths()
        number = int(before[-1].stem) + 1 if before else 0
        full = len(before) >= self.MOST
        with replacing(self.folder / f"{number:06d}.arrow", unique=True) as file:
            feather.write_feather(pa.concat_tables([self.read(), table]) if full else table, file)
        for path in before if full else ():
            path.unlink(missing_ok=True)

    def _paths(self) -> list[Path]:
        return sorted(self.folder.glob("*.arrow"))


def _read(path: Path) -> pa.Table:
    """A table, or an empty one in place of a damaged one."""
    with suppress(OSError, pa.ArrowException):
        table = feather.read_table(path)
        if table.schema.equals(SCHEMA):
            return table
    return SCHEMA.empty_table()
