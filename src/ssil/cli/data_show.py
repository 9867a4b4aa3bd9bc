"""`ssil data show`: what a set of images holds."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import App, Parameter
from numpy.typing import NDArray
from rich.markup import escape
from rich.table import Table

from ssil.cli.data_options import Choice, Name, chosen, packed, safe, tell
from ssil.cli.progress import counting
from ssil.cli.terminal import Json, console, json_line
from ssil.core.errors import UserError
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
"""Files whose sizes are looked at; a store knows them all."""
NAMED = 40
ENDS = 3
"""Classes that are named: of all, of the smallest, of the largest."""

Numbers = dict[str, Any]


@app.default
def show(
    source: Name,
    /,
    *,
    choice: Choice | None = None,
    sheet: Annotated[Path | None, Parameter(help="a PNG file to draw: some pictures of up to 40 classes")] = None,
    json: Json = False,
) -> None:
    """Show counts, classes and sizes, and a sheet of pictures."""
    with counting("reading", json) as count:
        listing = chosen(source, choice or Choice(), count)
    numbers = _numbers(listing)
    if json:
        json_line(**numbers, remarks=[remark._asdict() for remark in listing.remarks])
    else:
        _print(listing, numbers)
    if sheet:
        _draw(listing, sheet)


def _numbers(listing: ImageIndex) -> Numbers:
    counts = np.bincount(listing.labels, minlength=len(listing.classes))
    smallest, largest = (np.argsort(order, kind="stable")[:ENDS].tolist() for order in (counts, -counts))
    widths, heights, unreadable = _sizes(listing)
    return {
        "name": listing.name,
        "images": len(listing),
        "test_images": None if listing.tested is None else int(listing.tested.sum()),
        "classes": len(listing.classes),
        "per_class": _range(counts),
        "smallest": [(listing.classes[label], int(counts[label])) for label in smallest],
        "largest": [(listing.classes[label], int(counts[label])) for label in largest],
        "width": _range(widths),
        "height": _range(heights),
        "measured": len(widths),
        "unreadable": unreadable,
    }


def _sizes(listing: ImageIndex) -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
    """Widths and heights, and how many of the files that were looked at can't be read."""
    if kept := packed(listing.source):
        images, rows = kept
        return images.columns.width[rows], images.columns.height[rows], 0
    found, unreadable = [], 0
    for index in spread(range(len(listing)), MEASURED):
        try:
            found.append(measure(listing.source.read(index)))
        except (OSError, UnreadableError):
            unreadable += 1
    widths, heights = np.array(found, dtype=np.int32).reshape(-1, 2).T
    return widths, heights, unreadable


def _range(values: NDArray[np.integer[Any]]) -> dict[str, float] | None:
    if not len(values):
        return None
    return {"min": int(values.min()), "median": float(np.median(values)), "max": int(values.max())}


def _print(listing: ImageIndex, numbers: Numbers) -> None:
    screen, made = console(), Table.grid(padding=(0, 2, 0, 0))
    for title, text in _lines(listing, numbers):
        made.add_row(f"[bold]{title}[/]", escape(safe(text)))
    screen.print(made)
    if listing.remarks:
        screen.print(f"[bold]remarks[/]: {len(listing.remarks):,}")
        where = f": see {REFUSED} in the store" if packed(listing.source) else "; see `ssil data check`"
        tell(screen, listing.remarks, where)


def _lines(listing: ImageIndex, numbers: Numbers) -> Iterator[tuple[str, str]]:
    """A title and a text, for each thing to be told."""
    yield "name", listing.name
    yield "images", f"{len(listing):,}, {_split(numbers)}"
    rest = len(listing.classes) - NAMED
    some = ", ".join(listing.classes[:NAMED]) + (f" and {rest:,} more" if rest > 0 else "")
    yield "classes", f"{len(listing.classes):,}: {some}"
    yield "per class", _spelt(numbers["per_class"], "images")
    for which in ("smallest", "largest") if numbers["per_class"]["min"] < numbers["per_class"]["max"] else ():
        yield which, ", ".join(f"{name} ({count:,})" for name, count in numbers[which])
    of = f" (of {numbers['measured']:,} looked at)" if numbers["measured"] < len(listing) else ""
    for side in ("width", "height"):
        yield side, f"{_spelt(numbers[side], 'pixels')}{of}"
    if numbers["unreadable"]:
        yield "unreadable", f"{numbers['unreadable']:,} of those looked at; see `ssil data check`"


def _split(numbers: Numbers) -> str:
    tests = numbers["test_images"]
    if tests is None:
        return "of which a fifth of each class, chosen by the seed, is for testing"
    return f"{numbers['images'] - tests:,} for training and {tests:,} for testing"


def _spelt(values: dict[str, float] | None, unit: str) -> str:
    """A range in words.

    >>> _spelt({"min": 3, "median": 5.5, "max": 1200}, "images")
    '3 to 1,200 images, median 5.5'
    """
    if not values:
        return "none could be read"
    least, median, most = values["min"], values["median"], values["max"]
    return f"{least:,} {unit} each" if least == most else f"{least:,} to {most:,} {unit}, median {median:,g}"


def _draw(listing: ImageIndex, sheet: Path) -> None:
    try:
        sheet.parent.mkdir(parents=True, exist_ok=True)
        contact_sheet(listing).save(sheet, "PNG")
    except OSError as error:
        raise UserError(f"sheet: {sheet} can't be written ({error.strerror}); give another file") from error
