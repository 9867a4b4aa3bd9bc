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
from ssil.data.image_index import DEFAULT_PREPROCESSING, ImageIndex, Labels, Remark, read_image_file
from ssil.data.sources.folder import SIZE, natural_key, with_trainable_classes

PREFIX = "hf:"
INFOS = (
    DatasetInfo(
        f"{PREFIX}NAME",
        "a set of images on the Hugging Face hub: hf:NAME, hf:NAME:CONFIG, or hf: and a folder of Parquet files",
        "any",
        SIZE,
        "pip install 'ssil[hub]'",
    ),
)
TESTS = ("test", "validation")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@dataclass(frozen=True, eq=False)
class HubImages:
    """A source: the encoded images in one column of some splits, one split after the other."""

    splits: Mapping[str, Any]
    column: str

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The split and the row of each image."""
        return tuple(f"{split}[{row}]" for split, rows in self.splits.items() for row in range(len(rows)))

    def read(self, row: int) -> bytes:
        """Return the encoded image."""
        for rows in self.splits.values():
            if row < len(rows):
                return _content(rows[row][self.column][0].as_py() or {})
            row -= len(rows)
        raise IndexError(row)

    def __len__(self) -> int:
        return sum(map(len, self.splits.values()))


def hub(name: str) -> ImageIndex:
    """Return the index of the set hf:NAME or hf:NAME:CONFIG, or of a local folder of Parquet files, hf:FOLDER.

    The columns of images and labels are recognised by their types; of several, those named image and label are used.
    The split test is for testing, or validation if there is no labelled test.
    """
    library = _library(name)
    title, splits = _load(library, name)
    image, label = _columns(library, name, splits["train"].features)
    test = next((split for split in TESTS if split in splits and _labelled(splits[split][label])), None)
    used = {split: splits[split] for split in ("train", test) if split}
    labels, classes = _labels(name, used, label)
    encoded = {split: _undecoded(library, rows, image) for split, rows in used.items()}
    is_test = None if test is None else np.arange(len(labels)) >= len(splits["train"])
    unused = [Remark(split, "the split is not used", left_out=False) for split in splits if split not in used]
    images = HubImages(encoded, image)
    return with_trainable_classes(
        ImageIndex(title, images, labels, classes, DEFAULT_PREPROCESSING, is_test, tuple(unused))
    )


def _library(name: str) -> Any:
    try:
        return import_module("datasets")
    except ImportError as error:
        raise UserError(f"dataset: {name} needs the library datasets: pip install 'ssil[hub]'") from error


def _load(library: Any, name: str) -> tuple[str, Mapping[str, Any]]:
    """Return the set's name, for a folder the folder's, and its splits."""
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
    """Return the names of the columns of images and of labels."""

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
    """Return whether any row has a label; the hub writes -1 for none."""
    return any(value is not None and value != -1 for value in values)


def _labels(name: str, splits: Mapping[str, Any], column: str) -> tuple[Labels, tuple[str, ...]]:
    """Return the labels of all rows, counted from 0, and the classes, in the set's order or else in natural order."""
    values = [value for rows in splits.values() for value in rows[column]]
    if not all(_labelled([value]) for value in values):
        raise UserError(
            f"dataset: {name} has rows without a {column}; save it without them as a folder of Parquet files"
        )
    feature = splits["train"].features[column]
    if hasattr(feature, "names"):
        return np.array(values, dtype=np.int64), tuple(feature.names)
    classes = sorted(set(map(str, values)), key=natural_key)
    number = {called: label for label, called in enumerate(classes)}
    return np.array([number[str(value)] for value in values], dtype=np.int64), tuple(classes)


def _undecoded(library: Any, rows: Any, image: str) -> Any:
    return rows.select_columns([image]).cast_column(image, library.Image(decode=False)).with_format("arrow")


def _content(image: Mapping[str, Any]) -> bytes:
    """Return the bytes in a row, or those of the file that it names."""
    if image.get("bytes") is not None:
        return bytes(image["bytes"])
    if image.get("path") is None:
        raise OSError("the row has no image")
    return read_image_file(Path(image["path"]))
