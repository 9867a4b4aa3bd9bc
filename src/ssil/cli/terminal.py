"""Where a command's words go, and how its tables look."""

import sys
from json import dumps
from typing import Annotated, Any

from cyclopts import Parameter
from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.table import Table

Json = Annotated[bool, Parameter(negative="", show_default=False, help="print a JSON object a line, for programs")]
"""The flag --json."""


Trust = Annotated[
    list[str] | None,
    Parameter(metavar="CODE", negative_iterable="", help="load a model that names this code of your own, file.py:name"),
]
"""The option --trust."""

WORD = 10
"""The least width of a column of words: a narrow terminal folds them, but never hides them."""


def console() -> Console:
    """The terminal; a pipe or a file gets lines as long as they need to be."""
    terminal = sys.stdout.isatty()
    return Console(highlight=False, soft_wrap=not terminal, width=None if terminal else 240)


def json_line(**value: Any) -> None:
    """An object on a line of its own, at once."""
    print(dumps(value, default=str), flush=True)


def table(*columns: str, words: int = 1, title: str | None = None) -> Table:
    """An empty table; the first so many columns hold words, the others numbers."""
    made = Table(box=SIMPLE_HEAD, show_edge=False, title=title, title_justify="left", title_style="bold")
    for index, column in enumerate(columns):
        justify: JustifyMethod = "left" if index < words else "right"
        least = WORD if index < words else None
        made.add_column(column, justify=justify, overflow="fold", no_wrap=index >= words, min_width=least)
    return made
