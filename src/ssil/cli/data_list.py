"""`ssil data list`: a set's images, their labels and their parts, as a table that can be cited and loaded again."""

import csv
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
from cyclopts import App, Parameter

from ssil.cli.data_options import Choice, Name, Threads, packed, rows_of, used
from ssil.cli.progress import counting
from ssil.core.errors import UserError
from ssil.data.dataset import Dataset
from ssil.data.image_index import Files, ImageIndex
from ssil.data.sources.class_files import OWN

app = App(
    name="list",
    help_epilogue="""The table has columns path, label, split and name (of the class), and a row for
each image that `ssil run` would use; what can't be read is not among them.

Examples:
  ssil data list my_photos --out split.csv
  ssil data list landmark-v2-1k --max-per-class 500 --out lm.csv
  ssil run --dataset split.csv --data-root my_photos""",
)

COLUMNS = ("path", "label", "split", "name")


@app.default
def list_images(
    source: Name,
    /,
    *,
    out: Annotated[Path, Parameter(help="the table: a .csv file")],
    choice: Choice | None = None,
    threads: Threads = None,
) -> None:
    """Write which images are for training and for testing."""
    if out.suffix.lower() != ".csv":
        raise UserError(f"out: {out} must end in .csv, by which such a table is known")
    with counting("reading") as count:
        listing, dataset = used(source, choice or Choice(), count, threads)
    _write(out, listing, dataset)
    print(f"{len(dataset.train):,} training and {len(dataset.test):,} test images in {out}")
    print(_how(out, listing))
    if unsaid := _unsaid(listing):
        print(f"a table does not tell of {listing.name}'s {', '.join(unsaid)}: these will be as for photographs")


def _write(out: Path, listing: ImageIndex, dataset: Dataset) -> None:
    try:
        with out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(_rows(listing, dataset))
    except OSError as error:
        raise UserError(f"out: {out} can't be written ({error.strerror}); give another file") from error
    except UnicodeEncodeError as error:
        raise UserError(f"data: the name {error.object!r} is no text, so no table can hold it; rename it") from error


def _rows(listing: ImageIndex, dataset: Dataset) -> Iterator[tuple[str, str, str, str]]:
    """Path, label, split and class of each image, by classes in their order. Classes that have keys go by these."""
    train, test = rows_of(dataset)
    rows, tested = np.concatenate([train, test]), np.arange(len(train) + len(test)) >= len(train)
    for place in np.argsort(listing.labels[rows], kind="stable").tolist():
        row, split = int(rows[place]), "test" if tested[place] else "train"
        label = int(listing.labels[row])
        yield listing.source.names[row], (listing.keys or listing.classes)[label], split, listing.classes[label]


def _how(out: Path, listing: ImageIndex) -> str:
    """What to do with the table."""
    if isinstance(listing.source, Files):
        return f"load it with: ssil run {shlex.join(_flags(out, listing, listing.source.root))}"
    if packed(listing.source):
        flags = shlex.join(_flags(out, listing, Path("DIR")))
        return f"load it with: ssil run {flags}, where DIR holds the files that the store was made from"
    return "its paths are no files, so it can be cited, but not be loaded"


def _flags(out: Path, listing: ImageIndex, root: Path) -> Iterator[str]:
    """Those that a table needs: paths are relative to the data root, or else to the table's folder."""
    yield from ("--dataset", str(out))
    if root.resolve() != out.resolve().parent:
        yield from ("--data-root", str(root))
    if listing.look.size != OWN.size:
        yield from ("--image-size", str(listing.look.size))
    if listing.look.augment != OWN.augment:
        yield from ("--augment", listing.look.augment)


def _unsaid(listing: ImageIndex) -> list[str]:
    """What no flag can say of how the pictures are seen."""
    return [one for one in ("channels", "flip", "mean", "std") if getattr(listing.look, one) != getattr(OWN, one)]
