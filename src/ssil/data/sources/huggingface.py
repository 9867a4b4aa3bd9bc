"""Data sets of the Hugging Face hub, through the library `datasets`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ssil.core.errors import UserError
from ssil.data.dataset import DatasetInfo
from ssil.data.image_index import ImageIndex, Labels, Remark, content
from ssil.data.sources.class_files import OWN, complete
from ssil.data.sources.file_tree import natural

PREFIX = "hf:"
INFO = DatasetInfo(
    f"{PREFIX}NAME",
    "a set of images on the Hugging Face hub: hf:NAME, hf:NAME:CONFIG, or hf: and a folder of Parquet files",
    "any",
    f"{OWN.size}x{OWN.size} colour, or as you say",
    "pip install 'ssil[hub]'",
)
TESTS = ("test", "validation")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@dataclass(frozen=True, eq=False)
class Rows:
    """The encoded images in a column of some splits, one split after the other."""

    splits: Mapping[str, Any]
    column: str

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Split and row."""
        return tuple(f"{split}[{row}]" for split, rows in self.splits.items() for row in range(len(rows)))

    def read(self, index: int) -> bytes:
        """The encoded image."""
        for rows in self.splits.values():
            if index < len(rows):
                return _content(rows[index][self.column][0].as_py() or {})
            index -= len(rows)
        raise IndexError(index)

    def __len__(self) -> int:
        return sum(map(len, self.splits.values()))


def hub(name: str) -> ImageIndex:
    """A set by its name, hf:NAME or hf:NAME:CONFIG, or a local folder of Parquet files, hf:FOLDER.

    Its columns of images and labels are known by their types; among several, by being called image and label. The split
    test is for testing, or validation if there is no labelled test.
    """
    library = _library(name)
    title, splits = _load(library, name)
    image, label = _columns(library, name, splits["train"].features)
    test = next((split for split in TESTS if split in splits and _labelled(splits[split][label])), None)
    used = {split: splits[split] for split in ("train", test) if split}
    labels, classes = _labels(name, used, label)
    encoded = {split: _undecoded(library, rows, image) for split, rows in used.items()}
    tested = None if test is None else np.arange(len(labels)) >= len(splits["train"])
    unused = [Remark(split, "the split is not used", left_out=False) for split in splits if split not in used]
    return complete(ImageIndex(title, Rows(encoded, image), labels, classes, OWN, tested, tuple(unused)))


def _library(name: str) -> Any:
    try:
        return import_module("datasets")
    except ImportError as error:
        raise UserError(f"dataset: {name} needs the library datasets: pip install 'ssil[hub]'") from error


def _load(library: Any, name: str) -> tuple[str, Mapping[str, Any]]:
    """The set's name, which for a folder is that of the folder, and its splits."""
    given = name.removeprefix(PREFIX)
    folder = Path(given).expanduser()
    path, _, config = (str(folder), "", "") if folder.is_dir() else given.partition(":")
    try:
        splits: Mapping[str, Any] = library.load_dataset(path, config or None)
    except (OSError, ValueError, library.exceptions.DatasetsError) as error:
        raise UserError(f"dataset: {name} can't be loaded by datasets: {' '.join(str(error).split())}") from error
    if "train" not in splits:
        raise UserError(f"dataset: {name} has no split train, but {', '.join(splits)}")
    return folder.resolve().name if folder.is_dir() else name, splits


def _columns(library: Any, name: str, features: Mapping[str, Any]) -> tuple[str, str]:
    """The columns of the images and of their labels."""

    def having(kind: type, *types: str) -> list[str]:
        found = [column for column, feature in features.items() if isinstance(feature, kind)]
        return [column for column in found if not types or features[column].dtype in types]

    labels = having(library.ClassLabel) or having(library.Value, "string", "large_string", *INTEGERS)
    return _one(name, "image", having(library.Image), features), _one(name, "label", labels, features)


def _one(name: str, what: str, found: Sequence[str], columns: Mapping[str, Any]) -> str:
    if what in found or len(found) == 1:
        return what if what in found else found[0]
    if not found:
        raise UserError(f"dataset: {name} has no column that can be its {what}; there are {', '.join(columns)}")
    raise UserError(
        f"dataset: {name} has several columns that can be its {what}: {', '.join(found)}; save it with one of them "
        "as a folder of Parquet files and give hf:FOLDER"
    )


def _labelled(values: Iterable[Any]) -> bool:
    """Whether there are labels at all; the hub has -1 for none."""
    return any(value is not None and value != -1 for value in values)


def _labels(name: str, splits: Mapping[str, Any], column: str) -> tuple[Labels, tuple[str, ...]]:
    """The labels of all rows, counted from 0, and the classes: in the set's order, or else in natural order."""
    values = [value for rows in splits.values() for value in rows[column]]
    if not all(_labelled([value]) for value in values):
        raise UserError(
            f"dataset: {name} has rows without a {column}; save it without them as a folder of Parquet files"
        )
    feature = splits["train"].features[column]
    if hasattr(feature, "names"):
        return np.array(values, dtype=np.int64), tuple(feature.names)
    classes = sorted(set(map(str, values)), key=natural)
    number = {called: label for label, called in enumerate(classes)}
    return np.array([number[str(value)] for value in values], dtype=np.int64), tuple(classes)


def _undecoded(library: Any, rows: Any, image: str) -> Any:
    return rows.select_columns([image]).cast_column(image, library.Image(decode=False)).with_format("arrow")


def _content(image: Mapping[str, Any]) -> bytes:
    """The bytes kept in a row, or those of the file that it names."""
    if image.get("bytes") is not None:
        return bytes(image["bytes"])
    if image.get("path") is None:
        raise OSError("the row has no image")
    return content(Path(image["path"]))
