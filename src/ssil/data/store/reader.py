"""Open a store: its index is mapped into memory, a shard when its first image is read. And check all its images."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from hashlib import sha256
from io import StringIO
from pathlib import Path
from zlib import crc32

import numpy as np
import pyarrow as pa

from ssil.core.cpu import usable_cores
from ssil.core.errors import UserError
from ssil.core.files import read_file
from ssil.data.dataset import DatasetInfo
from ssil.data.decode import UnreadableError, decode_image
from ssil.data.file_validation import FileValidation, ProgressCallback
from ssil.data.image_index import Flags, ImageIndex, Remark, Rows
from ssil.data.prefetch import prefetch
from ssil.data.store import format

INFOS = (DatasetInfo("STORE", "what `ssil data prepare` made of any of these", "any", "as of its source", "a folder"),)


@dataclass(frozen=True, eq=False)
class StoredImages:
    """The good images of a store: a `Source`, for any number of threads."""

    path: Path
    columns: format.IndexColumns
    _shards: dict[int, pa.ChunkedArray] = field(default_factory=dict)

    @property
    def names(self) -> format.Names:
        """The paths of the files that were packed."""
        return self.columns.name

    @cached_property
    def _verified(self) -> Flags:
        """Whether each image's checksum was compared."""
        return np.zeros(len(self), dtype=np.bool_)

    def read(self, row: int) -> memoryview:
        """Return the encoded image, a view of the mapped shard without copying; its CRC-32 is compared the first time.

        Raises:
            UserError: The image has changed since it was stored, or its shard can't be used.
        """
        data = self.read_unverified(row)
        if not self._verified[row]:
            if not self._seems_unchanged(row, data):
                shard = self.path / format.shard_name(int(self.columns.shard[row]))
                raise format.damaged(shard, f"the bytes of {self.names[row]} have changed since they were stored")
            self._verified[row] = True
        return data

    def read_unverified(self, row: int) -> memoryview:
        """Return the encoded image, whatever its digest."""
        images = self.images(int(self.columns.shard[row]))
        return memoryview(images[int(self.columns.row[row])].as_buffer()).cast("B").toreadonly()

    def _seems_unchanged(self, row: int, data: memoryview) -> bool:
        """Return whether the encoded image has the CRC-32 that the index has, or else the digest."""
        known = self.columns.crc32[row]
        return crc32(data) == known if known >= 0 else self.is_unchanged(row, data)

    def is_unchanged(self, row: int, data: memoryview) -> bool:
        """Return whether the encoded image has the digest that the index has."""
        return bool(sha256(data).digest()[:16] == self.columns.digest[row].tobytes())

    def images(self, shard: int) -> pa.ChunkedArray:
        """Return the images of a shard; two threads may open it at once."""
        if shard not in self._shards:
            path = self.path / format.shard_name(shard)
            images = format.read_table(path, format.SHARD_SCHEMA)["bytes"]
            format.validate(path, images)  # that each lies inside the file
            self._shards[shard] = images
        return self._shards[shard]

    def validation(self) -> FileValidation:
        """Return what file validation would find: all images are good."""
        return FileValidation(self.columns.length, self.columns.digest, self.columns.pixels)

    def __len__(self) -> int:
        return len(self.columns.label)


@dataclass(frozen=True, eq=False)
class Store:
    """A complete store."""

    path: Path
    facts: format.StoreFacts
    source: StoredImages

    def image_index(self) -> ImageIndex:
        """Return the index of its images."""
        facts, columns = self.facts, self.source.columns
        labels = columns.label.astype(np.int64)
        return ImageIndex(
            facts.source, self.source, labels, facts.classes, facts.look, columns.test, self.remarks(), facts.keys
        )

    def remarks(self) -> tuple[Remark, ...]:
        """Return the remarks on files that were refused when the store was written, and those of the source."""
        return tuple(remark for remark, _ in self._refused)

    @property
    def refused_labels(self) -> dict[str, int]:
        """The labels of the refused files, by their paths."""
        return {remark.path: label for remark, label in self._refused if label >= 0}

    @cached_property
    def _refused(self) -> list[tuple[Remark, int]]:
        """Each remark with the file's label; -1 where it is on no file."""
        try:
            data = read_file(self.path / format.REFUSED)
            if self.facts.refused_sha256 not in (None, sha256(data).hexdigest()):
                raise ValueError("its checksum differs")
            text = StringIO(data.decode(), newline="")
            return [
                (Remark(row["path"], row["reason"], row["left_out"] == "yes"), int(row["label"] or -1))
                for row in csv.DictReader(text)
            ]
        except (OSError, ValueError, KeyError) as error:
            raise format.damaged(self.path / format.REFUSED, error) from error


def open_store(path: Path) -> Store:
    """Return a complete store, whose description and index are unchanged; images are read and verified later.

    Raises:
        UserError: There is no store, it is not complete, or its files are damaged.
    """
    facts = read_facts(path)
    for number, length in enumerate(facts.lengths):
        _check_length(path / format.shard_name(number), length)
    columns = format.index_columns(_read_index(path, facts))
    if format.fingerprint(facts.classes, facts.keys, facts.look, columns) != facts.fingerprint:
        reason = "its classes, keys or preprocessing have changed since the store was written"
        raise format.damaged(path / format.STORE, reason)
    return Store(path, facts, StoredImages(path, columns))


def read_facts(path: Path) -> format.StoreFacts:
    """Return the description of a complete store; raise UserError if there is none, or it is damaged."""
    if (path / format.STORE).is_file():
        facts = format.read_json(path / format.STORE, format.StoreFacts)
        if facts.checksum not in (None, format.facts_checksum(facts)):
            raise format.damaged(path / format.STORE, "its checksum differs")
        return facts
    if (path / format.PREPARE).is_file():
        raise UserError(f"data: {path} is not complete; run the same `ssil data prepare` again to continue")
    raise UserError(f"data: {path} holds no store; make one with `ssil data prepare SOURCE --out {path}`")


def _check_length(shard: Path, expected: int) -> None:
    try:
        length = shard.stat().st_size
    except OSError as error:
        raise format.damaged(shard, error.strerror) from error
    if length != expected:
        raise format.damaged(shard, f"it has {length:,} bytes, not {expected:,}")


def _read_index(path: Path, facts: format.StoreFacts) -> pa.RecordBatch:
    table = format.read_table(path / format.INDEX, format.INDEX_SCHEMA, facts.index)
    format.validate(path / format.INDEX, table)
    batches = table.to_batches()
    if len(batches) != 1 or len(batches[0]) != facts.images:
        raise format.damaged(path / format.INDEX, f"it is not of {facts.images:,} images")
    return batches[0]


def check_store(
    store: Store, on_progress: ProgressCallback | None = None, threads: int | None = None, rows: Rows | None = None
) -> list[Remark]:
    """Return remarks on files that can't be used, and on images that have changed or can't be decoded.

    Args:
        store: A store that could be opened.
        on_progress: Is called with the number of checked images and the number of all.
        threads: The number of threads that decode; by default one per core.
        rows: The images to check; by default all.
    """
    columns, remarks = store.source.columns, list[Remark]()
    unusable = dict(_unusable_shards(store))
    remarks += [Remark(format.shard_name(shard), reason) for shard, reason in unusable.items()]
    rows = np.arange(len(store.source)) if rows is None else rows
    todo = rows[~np.isin(columns.shard[rows], list(unusable))].tolist()
    threads = threads or usable_cores()
    for done, fault in enumerate(prefetch(partial(_fault, store), todo, 4 * threads, threads), start=1):
        if on_progress:
            on_progress(done, len(todo))
        if fault:
            remarks.append(Remark(store.source.names[todo[done - 1]], fault))
    return remarks


def _unusable_shards(store: Store) -> Iterator[tuple[int, str]]:
    for shard in range(len(store.facts.lengths)):
        try:
            store.source.images(shard)
        except UserError as error:
            yield shard, str(error)


def _fault(store: Store, row: int) -> str | None:
    """Return what is wrong with an image; None if nothing is."""
    data, where = store.source.read_unverified(row), format.shard_name(int(store.source.columns.shard[row]))
    if not store.source.is_unchanged(row, data):
        return f"its bytes have changed since they were stored in {where}"
    try:
        decode_image(data)
    except UnreadableError as error:
        return f"{error}, in {where}"
    return None
