"""File validation: every image of a set is decoded once before it is used, and the results are cached."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
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

from ssil.core.cache_folder import cache_dir
from ssil.core.files import checksum, replacing
from ssil.data.decode import MissingDecoderError, UnreadableError, decode_image
from ssil.data.encoded_images import Digests
from ssil.data.image_index import (
    Bytes,
    Files,
    Flags,
    Remark,
    Rows,
    Source,
    SourceSubset,
    as_utf8,
    error_reason,
    refuse_remarks,
)
from ssil.data.prefetch import decoding_pool, default_threads

ProgressCallback = Callable[[int, int], None]
"""Called now and then with the number of images done and the number of all images."""

VERSION = 1  # of the cache: to be raised when the result for a file may change
BLOCK = 256
SECONDS_BETWEEN_SAVES = 60.0
MAX_TABLES = 16
NO_DIGEST = b"\0" * 16

Stamp = tuple[int, int]
"""A file's size and the time of its last change, before it was read."""
NO_STAMP: Stamp = (-1, 0)

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


class ImageCheck(NamedTuple):
    """The result of decoding an image: its size, its length in bytes, 16 bytes of SHA-256 over bytes and over pixels.

    A bad image has a `reason`, and nothing else.
    """

    width: int = 0
    height: int = 0
    length: int = 0
    digest: bytes = NO_DIGEST
    pixels: bytes = NO_DIGEST
    reason: str = ""


def check_image(data: Bytes) -> ImageCheck:
    """Decode an image completely; raise UnreadableError if that fails."""
    image = decode_image(data)
    height, width, _ = image.shape
    pixels = sha256(repr(image.shape).encode())
    pixels.update(np.ascontiguousarray(image).data)
    return ImageCheck(width, height, len(data), sha256(data).digest()[:16], pixels.digest()[:16])


@dataclass(frozen=True, eq=False)
class FileValidation:
    """The results for all rows of a source; rows with a reason are bad."""

    lengths: NDArray[np.int64]
    digests: Digests
    pixels: Digests
    reasons: Mapping[int, str] = field(default_factory=dict)

    @property
    def good(self) -> Flags:
        """Which rows are good."""
        good = np.ones(len(self.lengths), dtype=bool)
        good[list(self.reasons)] = False
        return good

    def remarks(self, names: Sequence[str]) -> tuple[Remark, ...]:
        """Return remarks on the bad rows."""
        return tuple(Remark(as_utf8(names[row]), reason) for row, reason in sorted(self.reasons.items()))

    def take(self, rows: Rows) -> "FileValidation":
        """Return the results for some rows."""
        reasons = {new: self.reasons[old] for new, old in enumerate(rows.tolist()) if old in self.reasons}
        return FileValidation(self.lengths[rows], self.digests[rows], self.pixels[rows], reasons)


def validate_files(
    source: Source,
    on_progress: ProgressCallback | None = None,
    strict: bool = False,
    threads: int | None = None,
    fresh: bool = False,
) -> FileValidation:
    """Decode every image of a source, and return which are good and why the others are not.

    A file that was decoded before and has not changed since is taken from the cache, good or bad. The images of a
    store (`data/store/`) were validated when it was packed; its own results are returned.

    Args:
        source: The encoded images.
        on_progress: Called after every 256 images with the number of validated images and of all images.
        strict: Raise UserError at the first bad image; otherwise bad images are left out with a remark.
        threads: The number of threads that decode.
        fresh: Whether to ignore the cache.
    """
    if known := _known_validation(source):
        return known
    results = _Results(source, fresh)
    todo: list[int] = (results.lengths < 0).nonzero()[0].tolist()
    pool = decoding_pool(threads or default_threads())
    try:
        for start in range(0, len(todo), BLOCK):
            block = todo[start : start + BLOCK]
            for row, (stamp, check) in zip(block, pool.map(partial(_check_row, source), block), strict=True):
                results.add(row, stamp, check)
                if strict and check.reason:
                    refuse_remarks([Remark(as_utf8(source.names[row]), check.reason)])
            if time.monotonic() - results.saved > SECONDS_BETWEEN_SAVES:  # so that little is lost by a kill
                results.save()
            if on_progress:
                on_progress(len(source) - len(todo) + start + len(block), len(source))
    finally:
        results.save()
    return FileValidation(results.lengths, results.digests, results.pixels, results.reasons)


def _known_validation(source: Source) -> FileValidation | None:
    if isinstance(source, SourceSubset):
        everything = _known_validation(source.source)
        return everything and everything.take(source.rows)
    own: Callable[[], FileValidation] | None = getattr(source, "validation", None)
    return own() if own else None


def _check_row(source: Source, row: int) -> tuple[Stamp, ImageCheck]:
    """Return the result for a row; without a stamp if the file can't be read, which may be repaired without a trace."""
    stamp = _stamp(source, row)
    try:
        return stamp, check_image(source.read(row))
    except MissingDecoderError as error:
        return NO_STAMP, ImageCheck(reason=str(error))
    except UnreadableError as error:
        return stamp, ImageCheck(reason=str(error))
    except OSError as error:
        return NO_STAMP, ImageCheck(reason=error_reason(error))


def _stamp(source: Source, row: int) -> Stamp:
    if not isinstance(source, Files):
        return NO_STAMP
    try:
        status = os.stat(source.root / source.names[row])  # noqa: PTH116 (half the time)
    except (OSError, ValueError):
        return NO_STAMP
    return status.st_size, status.st_mtime_ns


class _Results:
    """The results for each row of a source; those for files are also kept in the cache."""

    def __init__(self, source: Source, fresh: bool) -> None:
        self.source = source
        count = len(source)
        self.stamps = np.full((count, 2), NO_STAMP, dtype=np.int64)
        self.lengths = np.full(count, -1, dtype=np.int64)
        self.digests, self.pixels = np.zeros((2, count, 16), dtype=np.uint8)
        self.reasons: dict[int, str] = {}
        self.unsaved: list[int] = []
        self.saved = time.monotonic()
        self.cache = _ResultCache(source.root) if isinstance(source, Files) else None
        if self.cache and not fresh:
            self._recall(self.cache.read())

    def _recall(self, table: pa.Table) -> None:
        """Take over the cached results for files that have not changed."""
        rows, cached = np.array([*self._unchanged(table)], dtype=np.int64).reshape(-1, 2).T
        self.lengths[rows] = table["length"].to_numpy()[cached]
        self.digests[rows], self.pixels[rows] = (
            digest_array(table[name].combine_chunks())[cached] for name in ("digest", "pixels")
        )
        reasons = table["reason"].take(cached).to_pylist()
        self.reasons = {row: reason for row, reason in zip(rows.tolist(), reasons, strict=True) if reason}

    def _unchanged(self, table: pa.Table) -> Iterator[tuple[int, int]]:
        """Yield the row in the source and the row in the table of each file that is as it was."""
        cached = {name: at for at, name in enumerate(table["name"].to_pylist())}
        stamps = np.stack([table["size"].to_numpy(), table["changed"].to_numpy()], 1)
        for row, name in enumerate(self.source.names):
            at = cached.get(os.fsencode(name), -1)
            if at >= 0 and tuple(stamps[at]) == _stamp(self.source, row):
                yield row, at

    def add(self, row: int, stamp: Stamp, check: ImageCheck) -> None:
        self.lengths[row] = check.length
        self.digests[row], self.pixels[row] = (np.frombuffer(d, dtype=np.uint8) for d in (check.digest, check.pixels))
        if check.reason:
            self.reasons[row] = check.reason
        if stamp != NO_STAMP:
            self.stamps[row] = stamp
            self.unsaved.append(row)

    def save(self) -> None:
        """Write results to the cache that are not there yet; a cache that can't be written only costs time."""
        if self.cache and self.unsaved:
            with suppress(OSError):
                self.cache.append(self._table(self.unsaved))
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


def digest_array(column: pa.FixedSizeBinaryArray) -> Digests:
    """Return a column of digests as an array (N, 16), without copying."""
    return np.frombuffer(column.buffers()[1] or b"", dtype=np.uint8).reshape(-1, 16)[: len(column)]


class _ResultCache:
    """The cached results for the files below a folder: numbered tables, of which the last result for a file counts."""

    def __init__(self, root: Path) -> None:
        self.folder = cache_dir() / f"surveys-{VERSION}" / checksum(os.fsencode(root.resolve()), 16)

    def read(self) -> pa.Table:
        """Return all tables as one."""
        return pa.concat_tables([SCHEMA.empty_table(), *map(_read_table, self._paths())])

    def append(self, table: pa.Table) -> None:
        """Write another table, or if there are MAX_TABLES, one in place of all."""
        before = self._paths()
        number = int(before[-1].stem) + 1 if before else 0
        full = len(before) >= MAX_TABLES
        with replacing(self.folder / f"{number:06d}.arrow", unique=True) as file:
            feather.write_feather(pa.concat_tables([self.read(), table]) if full else table, file)
        for path in before if full else ():
            path.unlink(missing_ok=True)

    def _paths(self) -> list[Path]:
        return sorted(self.folder.glob("*.arrow"))


def _read_table(path: Path) -> pa.Table:
    """Return a table of the cache, or an empty one in place of a damaged one."""
    with suppress(OSError, pa.ArrowException):
        table = feather.read_table(path)
        if table.schema.equals(SCHEMA):
            return table
    return SCHEMA.empty_table()
