"""Opening a store: its index is mapped into memory, a shard when an image of it is first asked for."""

import csv
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from ssil.core.errors import UserError
from ssil.data.file_validation import FileValidation
from ssil.data.image_index import ImageIndex, Remark
from ssil.data.store.format import (
    INDEX,
    INDEX_SCHEMA,
    PREPARE,
    REFUSED,
    SHARD_SCHEMA,
    STORE,
    Columns,
    Facts,
    Names,
    columns,
    damaged,
    read_json,
    read_table,
    shard_name,
    validate,
)


@dataclass(frozen=True, eq=False)
class Packed:
    """The good images of a store: a `Source`, for any number of threads."""

    path: Path
    columns: Columns
    _open: dict[int, pa.ChunkedArray] = field(default_factory=dict)

    @property
    def names(self) -> Names:
        """The paths of the files that they were."""
        return self.columns.name

    def read(self, index: int) -> memoryview:
        """The encoded image: a view of the mapped shard, nothing is copied."""
        images = self.images(int(self.columns.shard[index]))
        return memoryview(images[int(self.columns.row[index])].as_buffer()).cast("B").toreadonly()

    def images(self, shard: int) -> pa.ChunkedArray:
        """The images of a shard; two threads that open it at once do no harm."""
        if shard not in self._open:
            path = self.path / shard_name(shard)
            images = read_table(path, SHARD_SCHEMA)["bytes"]
            validate(path, images)  # that each lies inside the file
            self._open[shard] = images
        return self._open[shard]

    def survey(self) -> FileValidation:
        """What a survey would find: all is good."""
        return FileValidation(self.columns.length, self.columns.digest, self.columns.pixels)

    def __len__(self) -> int:
        return len(self.columns.label)


@dataclass(frozen=True, eq=False)
class Store:
    """A complete store."""

    path: Path
    facts: Facts
    source: Packed

    def listing(self) -> ImageIndex:
        """What any source of images gives."""
        facts, found = self.facts, self.source.columns
        labels = found.label.astype(np.int64)
        return ImageIndex(
            facts.source, self.source, labels, facts.classes, facts.look, found.test, self.remarks(), facts.keys
        )

    def remarks(self) -> tuple[Remark, ...]:
        """What was refused when the store was made, and what the source remarked."""
        return tuple(remark for remark, _ in self._refused)

    @property
    def refused_labels(self) -> dict[str, int]:
        """The labels of the files that were refused, by their paths."""
        return {remark.path: label for remark, label in self._refused if label >= 0}

    @cached_property
    def _refused(self) -> list[tuple[Remark, int]]:
        """Each line, and its label; -1 where it is of no file."""
        try:
            with (self.path / REFUSED).open(newline="", encoding="utf-8") as file:
                rows = csv.DictReader(file)
                return [(_remark(row), int(row["label"] or -1)) for row in rows]
        except (OSError, ValueError, KeyError) as error:
            raise damaged(self.path / REFUSED, error) from error


def _remark(row: dict[str, str]) -> Remark:
    return Remark(row["path"], row["reason"], row["left_out"] == "yes")


def open_store(path: Path) -> Store:
    """A store that is complete; nothing is looked at but its index."""
    facts = _facts(path)
    _check_shards(path, facts)
    found = columns(_index(path, facts))
    return Store(path, facts, Packed(path, found))


def _facts(path: Path) -> Facts:
    if (path / STORE).is_file():
        return read_json(path / STORE, Facts)
    if (path / PREPARE).is_file():
        raise UserError(f"data: {path} is not complete; run the same `ssil data prepare` again to go on")
    raise UserError(f"data: {path} holds no store; make one with `ssil data prepare SOURCE --out {path}`")


def _check_shards(path: Path, facts: Facts) -> None:
    """That the shards are there, and as long as they were."""
    for number, length in enumerate(facts.lengths):
        shard = path / shard_name(number)
        try:
            found = shard.stat().st_size
        except OSError as error:
            raise damaged(shard, error.strerror) from error
        if found != length:
            raise damaged(shard, f"it has {found:,} bytes, not {length:,}")


def _index(path: Path, facts: Facts) -> pa.RecordBatch:
    table = read_table(path / INDEX, INDEX_SCHEMA)
    validate(path / INDEX, table)
    batches = table.to_batches()
    if len(batches) != 1 or len(batches[0]) != facts.images:
        raise damaged(path / INDEX, f"it is not of {facts.images:,} images")
    return batches[0]
