"""`ssil data list`: a set's images, their labels and their parts, as a table that can be cited and loaded again."""

import csv
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from ssil.cli.data.common import ClassList, DataRoot, Source, Threads, find
from ssil.cli.data.counting import counting
from ssil.data.assemble import assemble
from ssil.data.dataset import Dataset
from ssil.data.encoded import Encoded
from ssil.data.listing import Files, Listing
from ssil.data.survey import survey
from ssil.errors import UserError

app = App(
    name="list",
    help_epilogue="""The table has columns path, label and split, and a row for each image that
`ssil run` would use with this seed; what can't be read is not among them.

Examples:
  ssil data list my_photos --out split.csv
  ssil run --dataset split.csv --data-root my_photos""",
)


@app.default
def list_images(
    source: Source,
    /,
    *,
    out: Annotated[Path, Parameter(help="the table: a .csv file")],
    data_root: DataRoot = None,
    class_list: ClassList = None,
    seed: Annotated[int, Parameter(help="of the test part, where the source leaves it open")] = 0,
    threads: Threads = None,
) -> None:
    """Write which images are for training and for testing."""
    if out.suffix.lower() != ".csv":
        raise UserError(f"out: {out} must end in .csv, by which such a table is known")
    listing = find(source, data_root, class_list, seed)
    with counting("reading") as count:
        dataset = assemble(listing, survey(listing.source, count, threads=threads), seed, threads=1)
    _write(out, listing, dataset)
    print(f"{len(dataset.train):,} training and {len(dataset.test):,} test images in {out}")
    if isinstance(listing.source, Files):
        print(f"load it with: ssil run {shlex.join(_flags(out, listing.source.root))}")
    else:
        print("its paths are those of the files that the set was made from; say by --data-root where these are")


def _write(out: Path, listing: Listing, dataset: Dataset) -> None:
    try:
        with out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("path", "label", "split"))
            writer.writerows(_rows(listing, dataset))
    except OSError as error:
        raise UserError(f"out: {out} can't be written ({error.strerror}); give another file") from error


def _rows(listing: Listing, dataset: Dataset) -> Iterator[tuple[str, str, str]]:
    """Path, label and split of each image. Classes that have keys go by these, which keep the classes' order."""
    labels = listing.keys or listing.classes
    for split, samples in (("train", dataset.train), ("test", dataset.test)):
        assert isinstance(samples.images, Encoded)
        for row in samples.images.rows.tolist():
            yield listing.source.names[row], labels[listing.labels[row]], split


def _flags(out: Path, root: Path) -> list[str]:
    """Paths in the table are relative to the data root, or else to the table's folder."""
    elsewhere = root.resolve() != out.resolve().parent
    return ["--dataset", str(out), *(["--data-root", str(root)] if elsewhere else [])]
