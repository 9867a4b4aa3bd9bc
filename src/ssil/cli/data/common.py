"""What the commands of `ssil data` share."""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.markup import escape

from ssil.data import PIXELS, Asked, find_listing
from ssil.data.find import NAMED
from ssil.data.listing import Listing, Remark
from ssil.errors import UserError

Source = Annotated[str, Parameter(help="a name, a folder, a table of paths and labels, or a store")]
DataRoot = Annotated[Path | None, Parameter(help="where a named set lies (default: $SSIL_DATA), or a table's files")]
ClassList = Annotated[Path | None, Parameter(help="a file with the classes to take, one a line")]
Threads = Annotated[int | None, Parameter(help="images at once (default: one a core)")]

FEW = 10
"""Remarks that are shown before the rest is only counted."""


def find(source: str, root: Path | None = None, class_list: Path | None = None, seed: int = 0) -> Listing:
    """The images of a source."""
    listing = find_listing(source, Asked(root=root, class_list=class_list, seed=seed))
    if listing is None:
        raise UserError(f"source: {source!r} is no set of image files; {_cure(source)}")
    return listing


def _cure(source: str) -> str:
    if source in PIXELS:
        return f"`ssil data export {source} --out DIR` makes it one"
    close = get_close_matches(source, NAMED, 1)
    return f"did you mean {close[0]!r}?" if close else "give the path of a folder, a table or a store"


def tell(screen: Console, remarks: Iterable[Remark], rest: str) -> None:
    """The first few remarks, a line each; `rest` says where the others are."""
    remarks = list(remarks)
    for remark in remarks[:FEW]:
        screen.print(f"  {escape(remark.path)}: {escape(remark.reason)}")
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
