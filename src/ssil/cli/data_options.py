"""Options and messages that the commands of `ssil data` share."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, TypeVar

import numpy as np
from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console

from ssil.cli.terminal import plain
from ssil.core.errors import UserError, did_you_mean
from ssil.core.settings import validated
from ssil.data.assemble import assemble
from ssil.data.data_settings import DataSettings
from ssil.data.dataset import Dataset, subset
from ssil.data.encoded_images import Encoded
from ssil.data.file_validation import ProgressCallback
from ssil.data.image_index import ImageIndex, Remark, Rows, Source, SourceSubset
from ssil.data.load import LANDMARKS, NAMED, PIXELS, find_image_index, find_validated_index
from ssil.data.store.reader import StoredImages

SourceName = Annotated[str, Parameter(help="a name, a folder, a table of paths and labels, or a store")]
DataRoot = Annotated[Path | None, Parameter(help="where a named set lies (default: $SSIL_DATA), or a table's files")]
Threads = Annotated[int | None, Parameter(validator=Number(gte=1), help="images at once (default: one per core)")]

MAX_REMARKS = 10
"""The number of remarks that are shown before the rest is only counted."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Choice:
    """The part of a source to use, by the same flags as those of `ssil run`."""

    data_root: DataRoot = None
    classes: Annotated[int | None, Parameter(help="take the first N classes")] = None
    class_list: Annotated[Path | None, Parameter(help="a file with the classes to take, one per line")] = None
    min_per_class: Annotated[int | None, Parameter(help="take classes with at least N good images")] = None
    max_per_class: Annotated[int | None, Parameter(help="take at most N training images per class")] = None
    test_per_class: Annotated[int | None, Parameter(help="take N test images per class")] = None
    split_seed: Annotated[int, Parameter(help="of the test part, where the source leaves it open")] = 0

    def settings(self, source: str) -> DataSettings:
        """Return the settings for this part of a source; raise UserError if a value does not fit."""
        return validated(DataSettings, {"dataset": source, **vars(self)})


def chosen_images(source: str, choice: Choice, on_progress: ProgressCallback, threads: int | None = None) -> ImageIndex:
    """Return the index of the chosen part of a source; all files are validated first if limits count good ones."""
    limits = (choice.min_per_class, choice.max_per_class, choice.test_per_class)
    if source in LANDMARKS or limits == (None, None, None):
        return require(source, find_image_index(choice.settings(source)))
    index, dataset = used_images(source, choice, on_progress, threads)
    train, test = rows_of(dataset)
    rows = np.sort(np.concatenate([train, test]))
    return replace(index.take(rows), is_test=np.isin(rows, test))


def used_images(
    source: str, choice: Choice, on_progress: ProgressCallback, threads: int | None = None
) -> tuple[ImageIndex, Dataset]:
    """Return a source's index, with remarks on bad files, and the data set that `ssil run` would use."""
    index, validation = require(source, find_validated_index(choice.settings(source), threads, on_progress))
    limits = (None, None) if source in LANDMARKS else (choice.max_per_class, choice.test_per_class)
    dataset = subset(assemble(index, validation, choice.split_seed, 1, limits[0]), None, None, limits[1])
    return replace(index, remarks=(*index.remarks, *validation.remarks(index.source.names))), dataset


def rows_of(dataset: Dataset) -> tuple[Rows, Rows]:
    """Return the rows of a data set's source that are for training, and for testing."""
    train, test = dataset.train.images, dataset.test.images
    assert isinstance(train, Encoded)
    assert isinstance(test, Encoded)
    return train.rows, test.rows


Found = TypeVar("Found")


def require(source: str, found: Found | None) -> Found:
    """Return what was found; raise UserError, which describes what is wrong with the source, if it is None."""
    if found is None:
        raise UserError(f"source: {source!r} is no set of image files; {_cure(source)}")
    return found


def _cure(source: str) -> str:
    if source in PIXELS:
        return f"`ssil data export {source} --out DIR` makes it one"
    return did_you_mean(source, NAMED, "give the path of a folder, a table or a store")


def stored_images(source: Source) -> tuple[StoredImages, Rows] | None:
    """Return the images of the store that a source is part of, and the rows of the source there."""
    rows = np.arange(len(source))
    while isinstance(source, SourceSubset):
        rows, source = source.rows[rows], source.source
    return (source, rows) if isinstance(source, StoredImages) else None


def print_remarks(screen: Console, remarks: Iterable[Remark], rest: str) -> None:
    """Print the first remarks, one per line; `rest` says where the others are."""
    remarks = list(remarks)
    for remark in remarks[:MAX_REMARKS]:
        screen.print(f"  {plain(remark.path)}: {plain(remark.reason)}")
    if len(remarks) > MAX_REMARKS:
        screen.print(f"  and {len(remarks) - MAX_REMARKS:,} more{rest}")


def format_bytes(count: float) -> str:
    """Return a number of bytes with a unit.

    >>> format_bytes(512), format_bytes(27_906_050), format_bytes(1.4e11)
    ('512 bytes', '27.9 MB', '140.0 GB')
    """
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count:.0f} bytes"
