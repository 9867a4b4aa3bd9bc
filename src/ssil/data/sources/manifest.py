"""Manifests: tables (CSV or Parquet) of image files with their labels."""

import csv
from collections.abc import Sequence
from io import StringIO
from os.path import join, normpath
from pathlib import Path
from typing import NamedTuple

from pyarrow import ArrowException, parquet

from ssil.core.errors import UserError
from ssil.core.files import read_file
from ssil.data.dataset import DatasetInfo
from ssil.data.image_index import DEFAULT_PREPROCESSING, ImageIndex
from ssil.data.sources.folder import SIZE, index_files, natural_key

INFOS = (
    DatasetInfo(
        "FILE.csv or FILE.parquet",
        "your own image files, listed in a table with columns path, label and, if you like, split and name",
        "any",
        SIZE,
        "a file",
    ),
)
SUFFIXES = (".csv", ".parquet")
IS_TEST = {"train": False, "test": True, "val": True, "validation": True}

Columns = list[str]
Values = list[tuple[object, ...]]


class ManifestRow(NamedTuple):
    """A row of the table."""

    path: str
    label: str
    split: str = ""
    name: str = ""


def manifest(path: Path, root: Path | None = None) -> ImageIndex:
    """Return the index of the files in a table with columns path, label and, where there is a test part, split.

    Paths are relative to `root`, or else to the table's folder. The split train is for training; test, val and
    validation are for testing. Classes are in natural order of their labels; with a further column `name`, the class
    name of each label, in order of appearance.
    """
    root = root or path.parent
    rows = _rows(path)
    _check(path, root, rows)
    split, named = any(row.split for row in rows), any(row.name for row in rows)
    labels = dict.fromkeys(row.label for row in rows)
    order = list(labels) if named else sorted(labels, key=natural_key)
    train, test = ({label: list[str]() for label in order} for _ in range(2))
    for row in rows:
        (test if IS_TEST.get(row.split.lower()) else train)[row.label].append(row.path)
    if split and not any(test.values()):
        raise UserError(f"dataset: {path}: the split of no row is test; have some for testing, or leave the column out")
    titles = {row.label: row.name for row in rows} if named else None
    return index_files(path.stem, root, DEFAULT_PREPROCESSING, train, test if split else None, titles)


def _check(path: Path, root: Path, rows: Sequence[ManifestRow]) -> None:
    """Raise UserError for a file in two rows, which could be in both parts, and for a label with two names."""
    files: dict[str, int] = {}
    labels: dict[str, int] = {}
    for number, row in enumerate(rows, start=1):
        file, label = normpath(join(root, row.path)), row.label  # noqa: PTH118 (faster than pathlib)
        if (other := files.setdefault(file, number)) != number:
            raise UserError(f"dataset: {path}: rows {other} and {number} list the same file, {row.path}; remove one")
        if (name := rows[labels.setdefault(label, number) - 1].name) != row.name:
            both = f"{name!r} (row {labels[label]}) and {row.name!r} (row {number})"
            raise UserError(f"dataset: {path}: label {label!r} has two names, {both}; give it one")


def _rows(path: Path) -> list[ManifestRow]:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UserError(f"dataset: {path} is no table of files: such a one ends in {' or '.join(SUFFIXES)}")
    try:
        columns, values = _csv(path) if suffix == ".csv" else _parquet(path)
    except (OSError, UnicodeDecodeError, csv.Error, ArrowException) as error:
        raise UserError(f"dataset: {path} can't be read: {' '.join(str(error).split())}") from error
    if not values:
        raise UserError(f"dataset: {path} lists no files; add a row for each, with its path and label")
    return [_row(path, number, columns, row) for number, row in enumerate(values, start=1)]


def _csv(path: Path) -> tuple[Columns, Values]:
    text = StringIO(read_file(path).decode("utf-8-sig"), newline="")
    reader = csv.DictReader(text, skipinitialspace=True)
    wanted = _columns(path, list(reader.fieldnames or ()))
    return wanted, [tuple(row[column] for column in wanted) for row in reader]


def _parquet(path: Path) -> tuple[Columns, Values]:
    with parquet.ParquetFile(path) as file:
        wanted = _columns(path, file.schema_arrow.names)
        table = file.read(columns=wanted)
    return wanted, list(zip(*(table[column].to_pylist() for column in wanted), strict=True))


def _columns(path: Path, names: list[str]) -> Columns:
    missing = [column for column in ("path", "label") if column not in names]
    if missing:
        there = f"its columns are {', '.join(names)}" if names else "it is empty"
        there += "; separate them by commas" if len(names) == 1 and ";" in names[0] else ""
        raise UserError(f"dataset: {path} has no column {' nor '.join(missing)}: {there}")
    return [column for column in ManifestRow._fields if column in names]


def _row(path: Path, number: int, columns: Columns, values: tuple[object, ...]) -> ManifestRow:
    """Return a validated row; `number` counts from 1, without the header."""
    texts = {column: "" if value is None else str(value).strip() for column, value in zip(columns, values, strict=True)}
    for column, text in texts.items():
        if not text:
            raise UserError(f"dataset: {path}: row {number} has no {column}; fill it in, or remove the row")
    if "split" in texts and texts["split"].lower() not in IS_TEST:
        raise UserError(f"dataset: {path}: split {texts['split']!r} in row {number} is none of {', '.join(IS_TEST)}")
    return ManifestRow(**texts)
