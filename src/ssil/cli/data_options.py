"""What the commands of `ssil data` share."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, TypeVar

import numpy as np
from cyclopts import Parameter
from rich.console import Console
from rich.markup import escape

from ssil.core.errors import UserError, did_you_mean
from ssil.core.settings import validated
from ssil.data.assemble import assemble
from ssil.data.data_settings import DataSettings
from ssil.data.dataset import Dataset, subset
from ssil.data.encoded_images import Encoded
from ssil.data.file_validation import ProgressCallback
from ssil.data.image_index import ImageIndex, Labels, Remark, Source
from ssil.data.load import LANDMARKS, NAMED, PIXELS, find_image_index, find_validated_index
from ssil.data.sources.class_selection import Part
from ssil.data.store.reader import Packed

Name = Annotated[str, Parameter(help="a name, a folder, a table of paths and labels, or a store")]
Threads = Annotated[int | None, Parameter(help="images at once (default: one a core)")]

FEW = 10
"""Remarks that are shown before the rest is only counted."""

At = Annotated[Path | None, Parameter(help="where a named set lies (default: $SSIL_DATA), or a table's files")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Choice:
    """Which images of a source, by the same flags as of `ssil run`."""

    data_root: At = None
    classes: Annotated[int | None, Parameter(help="take the first so many classes")] = None
    class_list: Annotated[Path | None, Parameter(help="a file with the classes to take, one a line")] = None
    min_per_class: Annotated[int | None, Parameter(help="take classes with at least so many good images")] = None
    max_per_class: Annotated[int | None, Parameter(help="take at most so many training images a class")] = None
    test_per_class: Annotated[int | None, Parameter(help="take so many test images a class")] = None
    split_seed: Annotated[int, Parameter(help="of the test part, where the source leaves it open")] = 0

    def settings(self, source: str) -> DataSettings:
        """The same as settings of `ssil.data.load`; raise UserError if a value does not fit."""
        return validated(DataSettings, {"dataset": source, **vars(self)})


def chosen(source: str, choice: Choice, on_progress: ProgressCallback, threads: int | None = None) -> ImageIndex:
    """The images of a source; where only good ones count towards a limit, all are decoded first."""
    limits = (choice.min_per_class, choice.max_per_class, choice.test_per_class)
    if source in LANDMARKS or limits == (None, None, None):
        return known(source, find_image_index(choice.settings(source)))
    listing, dataset = used(source, choice, on_progress, threads)
    train, test = rows_of(dataset)
    rows = np.sort(np.concatenate([train, test]))
    return replace(listing, source=Part(listing.source, rows), labels=listing.labels[rows], tested=np.isin(rows, test))


def used(
    source: str, choice: Choice, on_progress: ProgressCallback, threads: int | None = None
) -> tuple[ImageIndex, Dataset]:
    """The listing of a source, which remarks on bad files, and what `ssil run` would use of it."""
    listing, found = known(source, find_validated_index(choice.settings(source), threads, on_progress))
    most, tests = (None, None) if source in LANDMARKS else (choice.max_per_class, choice.test_per_class)
    dataset = subset(assemble(listing, found, choice.split_seed, 1, most), None, None, tests)
    return replace(listing, remarks=(*listing.remarks, *found.remarks(listing.source.names))), dataset


def rows_of(dataset: Dataset) -> tuple[Labels, Labels]:
    """The rows of its source that are for training, and for testing."""
    train, test = dataset.train.images, dataset.test.images
    assert isinstance(train, Encoded)
    assert isinstance(test, Encoded)
    return train.rows, test.rows


Found = TypeVar("Found")


def known(source: str, found: Found | None) -> Found:
    """What was found; if that is nothing, say what is wrong with the source."""
    if found is None:
        raise UserError(f"source: {source!r} is no set of image files; {_cure(source)}")
    return found


def _cure(source: str) -> str:
    if source in PIXELS:
        return f"`ssil data export {source} --out DIR` makes it one"
    return did_you_mean(source, NAMED, "give the path of a folder, a table or a store")


def packed(source: Source) -> tuple[Packed, Labels] | None:
    """The store that a source is of, and its rows there."""
    rows = np.arange(len(source))
    while isinstance(source, Part):
        rows, source = source.indices[rows], source.source
    return (source, rows) if isinstance(source, Packed) else None


def safe(text: str) -> str:
    r"""Text for a terminal, on one line.

    >>> safe("né[0m"), safe("\x1b[0m\n")
    ('né[0m', '\\x1b[0m\\n')
    """
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def tell(screen: Console, remarks: Iterable[Remark], rest: str) -> None:
    """The first few remarks, a line each; `rest` says where the others are."""
    remarks = list(remarks)
    for remark in remarks[:FEW]:
        screen.print(f"  {escape(safe(remark.path))}: {escape(safe(remark.reason))}")
    if len(remarks) > FEW:
        screen.print(f"  and {len(remarks) - FEW:,} more{rest}")


def size(count: float) -> str:
    """Bytes, as one says it.

    >>> size(512), size(27_906_050), size(1.4e11)
    ('512 bytes', '27.9 MB', '140.0 GB')
    """
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count:.0f} bytes"
