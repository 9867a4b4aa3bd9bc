"""`ssil data list`: write a set's images, labels and split as a table that can be cited and loaded again."""

import csv
import shlex
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Annotated

import numpy as np
from cyclopts import App, Parameter

from ssil.cli.data_options import Choice, SourceName, Threads, rows_of, stored_images, used_images
from ssil.cli.progress import counting
from ssil.cli.terminal import check_output, printable
from ssil.core.errors import UserError
from ssil.core.files import write_atomic
from ssil.data.dataset import Dataset
from ssil.data.image_index import DEFAULT_PREPROCESSING, Files, ImageIndex

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
    source: SourceName,
    /,
    *,
    out: Annotated[Path, Parameter(help="the table: a .csv file")],
    choice: Choice | None = None,
    threads: Threads = None,
) -> None:
    """Write which images are for training and for testing."""
    if out.suffix.lower() != ".csv":
        raise UserError(f"out: {out} must end in .csv, by which such a table is known")
    check_output("out", out)
    with counting("reading") as progress:
        index, dataset = used_images(source, choice or Choice(), progress, threads)
    _write(out, index, dataset)
    print(f"{len(dataset.train):,} training and {len(dataset.test):,} test images in {printable(out)}")
    print(printable(_usage(out, index)))
    if missing := _not_in_a_table(index):
        print(
            f"a table does not tell of {printable(index.name)}'s {', '.join(missing)}: these will be as for photographs"
        )


def _write(out: Path, index: ImageIndex, dataset: Dataset) -> None:
    try:
        text = StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(_rows(index, dataset))
        write_atomic(out, text.getvalue().encode())
    except OSError as error:
        raise UserError(f"out: {out} can't be written ({error.strerror}); give another file") from error
    except UnicodeEncodeError as error:
        raise UserError(f"data: the name {error.object!r} is no text, so no table can hold it; rename it") from error


def _rows(index: ImageIndex, dataset: Dataset) -> Iterator[tuple[str, str, str, str]]:
    """Yield path, label, split and class name of each image, class by class; a label is the class's key, if any."""
    train, test = rows_of(dataset)
    rows, is_test = np.concatenate([train, test]), np.arange(len(train) + len(test)) >= len(train)
    for place in np.argsort(index.labels[rows], kind="stable").tolist():
        row, split = int(rows[place]), "test" if is_test[place] else "train"
        label = int(index.labels[row])
        yield index.source.names[row], (index.keys or index.classes)[label], split, index.classes[label]


def _usage(out: Path, index: ImageIndex) -> str:
    """Return how to load the table."""
    if isinstance(index.source, Files):
        return f"load it with: ssil run {shlex.join(_flags(out, index, index.source.root))}"
    if stored_images(index.source):
        flags = shlex.join(_flags(out, index, Path("DIR")))
        return f"load it with: ssil run {flags}, where DIR holds the files that the store was made from"
    return "its paths are no files, so it can be cited, but not be loaded"


def _flags(out: Path, index: ImageIndex, root: Path) -> Iterator[str]:
    """Yield the flags of `ssil run` that load the table; its paths are relative to the data root or to its folder."""
    yield from ("--dataset", str(out))
    if root.resolve() != out.resolve().parent:
        yield from ("--data-root", str(root))
    if index.preprocessing.size != DEFAULT_PREPROCESSING.size:
        yield from ("--image-size", str(index.preprocessing.size))
    if index.preprocessing.augment != DEFAULT_PREPROCESSING.augment:
        yield from ("--augment", index.preprocessing.augment)


def _not_in_a_table(index: ImageIndex) -> list[str]:
    """Return the parts of the preprocessing that differ from the default and that no flag can set."""
    ours, default = index.preprocessing, DEFAULT_PREPROCESSING
    return [name for name in ("channels", "flip", "mean", "std") if getattr(ours, name) != getattr(default, name)]
