"""Image files that a table lists with their labels."""

import csv
from pathlib import Path
from typing import NamedTuple

from pyarrow import ArrowException, parquet

from ssil.data.dataset import Info
from ssil.data.listing import Listing
from ssil.data.sources.gather import OWN, gather
from ssil.data.sources.tree import natural
from ssil.errors import UserError

INFO = Info(
    "FILE.csv or FILE.parquet",
    "your own image files, listed in a table with columns path, label and, if you like, split",
    "any",
    f"{OWN.size}x{OWN.size} colour, or as you say",
    "a file",
)
SUFFIXES = (".csv", ".parquet")
TESTED = {"train": False, "test": True, "val": True, "validation": True}

Values = list[tuple[object, ...]]


class Row(NamedTuple):
    """A line of the table: its columns."""

    path: str
    label: str
    split: str = ""


def manifest(path: Path, root: Path | None = None) -> Listing:
    """The files in a CSV or Parquet table with columns path, label and, where the test part is given, split.

    Paths are relative to `root`, or else to the table's folder. Classes come in natural order of their labels. Of the
    splits, train is for training; test, val and validation are for testing.
    """
    rows = [_row(path, number, values) for number, values in enumerate(_read(path), start=1)]
    labels = sorted({row.label for row in rows}, key=natural)
    train: dict[str, list[str]] = {label: [] for label in labels}
    test: dict[str, list[str]] = {label: [] for label in labels}
    for row in rows:
        (test if TESTED.get(row.split) else train)[row.label].append(row.path)
    split = any(row.split for row in rows)
    if split and not any(test.values()):
        raise UserError(f"dataset: {path}: the split of no row is test; have some for testing, or leave the column out")
    return gather(path.stem, root or path.parent, OWN, train, test if split else None)


def _read(path: Path) -> Values:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UserError(f"dataset: {path} is no table of files: such a one ends in {' or '.join(SUFFIXES)}")
    try:
        values = _csv(path) if suffix == ".csv" else _parquet(path)
    except (OSError, UnicodeDecodeError, csv.Error, ArrowException) as error:
        raise UserError(f"dataset: {path} can't be read: {' '.join(str(error).split())}") from error
    if not values:
        raise UserError(f"dataset: {path} lists no files; add a row for each, with its path and label")
    return values


def _csv(path: Path) -> Values:
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file, skipinitialspace=True)
        wanted = _columns(path, list(reader.fieldnames or ()))
        return [tuple(row[column] for column in wanted) for row in reader]


def _parquet(path: Path) -> Values:
    with parquet.ParquetFile(path) as file:
        wanted = _columns(path, file.schema_arrow.names)
        table = file.read(columns=wanted)
    return list(zip(*(table[column].to_pylist() for column in wanted), strict=True))


def _columns(path: Path, names: list[str]) -> list[str]:
    missing = [column for column in ("path", "label") if column not in names]
    if missing:
        there = f"its columns are {', '.join(names)}" if names else "it is empty"
        raise UserError(f"dataset: {path} has no column {' nor '.join(missing)}: {there}")
    return [column for column in Row._fields if column in names]


def _row(path: Path, number: int, values: tuple[object, ...]) -> Row:
    """A row, checked; they are counted from 1, the header apart."""
    texts = ["" if value is None else str(value).strip() for value in values]
    for column, text in zip(Row._fields, texts, strict=False):
        if not text:
            raise UserError(f"dataset: {path}: row {number} has no {column}; fill it in, or remove the row")
    row = Row(*texts)
    if row.split and row.split.lower() not in TESTED:
        raise UserError(f"dataset: {path}: split {row.split!r} in row {number} is none of {', '.join(TESTED)}")
    return row._replace(split=row.split.lower())
