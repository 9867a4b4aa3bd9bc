"""`ssil data show`: show the classes, counts and sizes of a set of images."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import App, Parameter
from numpy.typing import NDArray
from rich.table import Table

from ssil.cli.data_options import (
    Choice,
    SourceName,
    chosen_images,
    print_remarks,
    stored_images,
)
from ssil.cli.progress import counting
from ssil.cli.terminal import Json, check_output, console, json_line, plain
from ssil.core.errors import UserError
from ssil.core.files import replacing
from ssil.data.contact_sheet import contact_sheet, spread
from ssil.data.decode import UnreadableError, measure
from ssil.data.image_index import ImageIndex
from ssil.data.store.format import REFUSED

app = App(
    name="show",
    help_epilogue="""Examples:
  ssil data show my_photos
  ssil data show my_store --sheet contact.png
  ssil data show imagenet --data-root /data --json""",
)

MEASURED = 1000
"""The number of files whose sizes are read; a store knows all sizes."""
NAMED, ENDS = 40, 3
"""The number of classes that are named: of all, and of the smallest and the largest."""

Numbers = dict[str, Any]


@app.default
def show(
    source: SourceName,
    /,
    *,
    choice: Choice | None = None,
    sheet: Annotated[Path | None, Parameter(help="a PNG file to draw: some images of up to 40 classes")] = None,
    json: Json = False,
) -> None:
    """Show counts, classes and sizes, and a sheet of images."""
    if sheet:
        check_output("sheet", sheet)
        if sheet.suffix.lower() != ".png":
            raise UserError(f"sheet: {sheet} must end in .png, the format that is written")
    with counting("reading", json) as progress:
        index = chosen_images(source, choice or Choice(), progress)
    numbers = _numbers(index)
    if json:
        json_line(**numbers, remarks=[remark._asdict() for remark in index.remarks])
    else:
        _print(index, numbers)
    if sheet:
        _draw(index, sheet)


def _numbers(index: ImageIndex) -> Numbers:
    counts = index.counts()
    smallest, largest = (np.argsort(order, kind="stable")[:ENDS].tolist() for order in (counts, -counts))
    widths, heights, unreadable = _sizes(index)
    return {
        "name": index.name,
        "images": len(index),
        "test_images": None if index.is_test is None else int(index.is_test.sum()),
        "classes": len(index.classes),
        "per_class": _range(counts),
        "smallest": [(index.classes[label], int(counts[label])) for label in smallest],
        "largest": [(index.classes[label], int(counts[label])) for label in largest],
        "width": _range(widths),
        "height": _range(heights),
        "measured": len(widths),
        "unreadable": unreadable,
    }


def _sizes(index: ImageIndex) -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
    """Return widths, heights, and the number of files that were opened and can't be read."""
    if stored := stored_images(index.source):
        images, rows = stored
        return images.columns.width[rows], images.columns.height[rows], 0
    sizes, unreadable = [], 0
    for row in spread(range(len(index)), MEASURED):
        try:
            sizes.append(measure(index.source.read(row)))
        except (OSError, UnreadableError):
            unreadable += 1
    widths, heights = np.array(sizes, dtype=np.int32).reshape(-1, 2).T
    return widths, heights, unreadable


def _range(values: NDArray[np.integer[Any]]) -> dict[str, float] | None:
    if not len(values):
        return None
    return {"min": int(values.min()), "median": float(np.median(values)), "max": int(values.max())}


def _print(index: ImageIndex, numbers: Numbers) -> None:
    screen, table = console(), Table.grid(padding=(0, 2, 0, 0))
    for title, text in _lines(index, numbers):
        table.add_row(f"[bold]{title}[/]", plain(text))
    screen.print(table)
    if index.remarks:
        screen.print(f"[bold]remarks[/]: {len(index.remarks):,}")
        where = f": see {REFUSED} in the store" if stored_images(index.source) else "; see `ssil data check`"
        print_remarks(screen, index.remarks, where)


def _lines(index: ImageIndex, numbers: Numbers) -> Iterator[tuple[str, str]]:
    """Yield the title and the text of each line."""
    yield "name", index.name
    yield "images", f"{len(index):,}, {_split(numbers)}"
    rest = len(index.classes) - NAMED
    some = ", ".join(index.classes[:NAMED]) + (f" and {rest:,} more" if rest > 0 else "")
    yield "classes", f"{len(index.classes):,}: {some}"
    yield "per class", _range_text(numbers["per_class"], "images")
    for which in ("smallest", "largest") if numbers["per_class"]["min"] < numbers["per_class"]["max"] else ():
        yield which, ", ".join(f"{name} ({count:,})" for name, count in numbers[which])
    of = f" (of {numbers['measured']:,} measured)" if numbers["measured"] < len(index) else ""
    for side in ("width", "height"):
        yield side, f"{_range_text(numbers[side], 'pixels')}{of}"
    if numbers["unreadable"]:
        yield "unreadable", f"{numbers['unreadable']:,} of those read; see `ssil data check`"


def _split(numbers: Numbers) -> str:
    tests = numbers["test_images"]
    if tests is None:
        return "of which a fifth of each class, chosen by the seed, is for testing"
    return f"{numbers['images'] - tests:,} for training and {tests:,} for testing"


def _range_text(values: dict[str, float] | None, unit: str) -> str:
    """Return a range as text.

    >>> _range_text({"min": 3, "median": 5.5, "max": 1200}, "images")
    '3 to 1,200 images, median 5.5'
    """
    if not values:
        return "none could be read"
    least, median, most = values["min"], values["median"], values["max"]
    return f"{least:,} {unit} each" if least == most else f"{least:,} to {most:,} {unit}, median {median:,g}"


def _draw(index: ImageIndex, sheet: Path) -> None:
    try:
        with replacing(sheet) as file:
            contact_sheet(index).save(file, "PNG")
    except OSError as error:
        raise UserError(f"sheet: {sheet} can't be written ({error.strerror}); give another file") from error
