"""Output of all commands: the console, JSON lines, tables, durations, and the options that commands share."""

import sys
from importlib.util import find_spec
from json import dumps
from typing import Annotated, Any

from cyclopts import Parameter
from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.table import Table

from ssil.core.errors import UserError

Json = Annotated[bool, Parameter(negative="", show_default=False, help="print one JSON object per line, for programs")]
"""The flag --json."""

Trust = Annotated[
    list[str] | None,
    Parameter(metavar="CODE", negative_iterable="", help="load a model that names this code of your own, file.py:name"),
]
"""The option --trust."""

MIN_TEXT_WIDTH = 10
"""The minimum width of a text column: a narrow terminal folds text, but never hides it."""


def console() -> Console:
    """Return a console for stdout; into a pipe or a file it writes lines of any length."""
    terminal = sys.stdout.isatty()
    return Console(highlight=False, soft_wrap=not terminal, width=None if terminal else 240)


def json_line(**value: Any) -> None:
    """Print `value` as a JSON object on one line, and flush."""
    print(dumps(value, default=str), flush=True)


def table(*columns: str, words: int = 1, title: str | None = None) -> Table:
    """Return an empty table whose first `words` columns hold text and whose other columns hold numbers."""
    empty = Table(box=SIMPLE_HEAD, show_edge=False, title=title, title_justify="left", title_style="bold")
    for index, column in enumerate(columns):
        justify: JustifyMethod = "left" if index < words else "right"
        width = MIN_TEXT_WIDTH if index < words else None
        empty.add_column(column, justify=justify, overflow="fold", no_wrap=index >= words, min_width=width)
    return empty


def duration(seconds: float) -> str:
    """Return a duration as text.

    >>> duration(8.24), duration(125), duration(7320)
    ('8.2 s', '2 min 05 s', '2 h 02 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def require_plotly(option: str) -> None:
    """Raise UserError if plotly, which pages need, is not installed."""
    if not find_spec("plotly"):
        raise UserError(f"{option}: plotly is missing; install it with pip install 'ssil[report]'")
