"""Streams from a table: a CSV file of (image, task) pairs."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import StringIO
from pathlib import Path

import torch
from torch import Tensor

from ssil.core.errors import UserError, did_you_mean, one_line
from ssil.core.files import read_file
from ssil.core.settings import MAX_SHOWN

SUFFIX = ".csv"
"""Ends the name of a table."""
MOST_TASKS = 100_000


@dataclass(frozen=True)
class StreamTable:
    """The rows of a table: images, by path or by index, and the task of each, counted from 1."""

    path: Path
    by_path: bool
    images: tuple[str, ...]
    tasks: tuple[int, ...]
    numbers: tuple[int, ...]
    """The number of each row in the table, counted from 1 and without the header, for messages."""

    def pairs(self, names: Sequence[str] | None, images: int) -> Tensor:
        """Return the pairs (index of a training image, task) as an (n, 2) tensor.

        Args:
            names: The paths of the training images, as the data set names them; None if its images have none.
            images: The number of training images.

        Raises:
            UserError: A row names no training image.
        """
        if self.by_path and names is None:
            raise UserError(f"stream: {self.path} has paths, and this data set's images have none; give a column index")
        found = self._by_path(names or ()) if self.by_path else self._by_index(images)
        return torch.tensor([*zip(found, self.tasks, strict=True)])

    def _by_path(self, names: Sequence[str]) -> Iterator[int]:
        index = {name: place for place, name in enumerate(names)}
        for name, number in zip(self.images, self.numbers, strict=True):
            if name not in index:
                hint = did_you_mean(name, names, f"paths are, for example: {', '.join(names[:2])}")
                raise UserError(f"stream: {self.path}: row {number}: {_shown(name)} is no training image; {hint}")
            yield index[name]

    def _by_index(self, images: int) -> Iterator[int]:
        for text, number in zip(self.images, self.numbers, strict=True):
            if not _is_count(text) or int(text) >= images:
                wanted = f"give numbers from 0 to {images - 1}"
                raise UserError(f"stream: {self.path}: row {number}: {_shown(text)} is no training image; {wanted}")
            yield int(text)


def is_table(stream: str) -> bool:
    """Return whether a stream's name is that of a table."""
    return stream.lower().endswith(SUFFIX)


def read_stream_table(path: Path) -> StreamTable:
    """Read a table with a column path or index, and a column task; rows without a task are left out.

    Raises:
        UserError: The file can't be read, lacks a column, or a task is no number from 1 on.
    """
    try:
        return _parse(path, read_file(path))
    except OSError as error:
        raise UserError(f"stream: {path} can't be read ({error.strerror}); check the path") from None


@lru_cache(maxsize=4)
def _parse(path: Path, content: bytes) -> StreamTable:
    try:
        reader = csv.DictReader(StringIO(content.decode("utf-8-sig"), newline=""), skipinitialspace=True)
        column, rows = _column(path, list(reader.fieldnames or ())), [*enumerate(reader, 1)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"stream: {path} can't be read: {one_line(error)}") from None
    kept = [(number, row) for number, row in rows if (row["task"] or "").strip()]
    if not kept:
        raise UserError(f"stream: {path} gives no image a task; add a row for each image, with its {column} and task")
    tasks = tuple(_task(path, number, str(row["task"]).strip()) for number, row in kept)
    images = tuple((row[column] or "").strip() for _, row in kept)
    return StreamTable(path, column == "path", images, tasks, tuple(number for number, _ in kept))


def _column(path: Path, names: list[str]) -> str:
    """Return the column that names the images; raise UserError if there is none, or no column of tasks."""
    columns = [name for name in ("path", "index") if name in names]
    there = f"its columns are {', '.join(names)[:MAX_SHOWN]}" if names else "it is empty"
    if len(columns) != 1:
        which = "both a column path and a column index" if columns else "no column path nor index"
        raise UserError(f"stream: {path} has {which}: {there}; name each image by one of them")
    if "task" not in names:
        raise UserError(f"stream: {path} has no column task: {there}")
    return columns[0]


def _task(path: Path, number: int, text: str) -> int:
    if not _is_count(text) or not 1 <= int(text) <= MOST_TASKS:
        raise UserError(f"stream: {path}: row {number}: task {_shown(text)} is no number; tasks are counted from 1")
    return int(text)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 12


def _shown(text: str) -> str:
    return repr(text[:MAX_SHOWN])
