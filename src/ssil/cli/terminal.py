"""Output of all commands: the console, JSON lines, tables, durations, and the options that commands share."""

import os
import sys
from collections.abc import Sequence
from errno import EISDIR
from importlib.util import find_spec
from json import dumps
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, Any, TextIO

from cyclopts import Parameter
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markup import escape
from rich.table import Column, Table

from ssil.core.errors import UserError

if TYPE_CHECKING:
    from ssil.data.image_index import Remark

Json = Annotated[bool, Parameter(negative="", show_default=False, help="print one JSON object per line, for programs")]
"""The flag --json."""

Trust = Annotated[
    list[str] | None,
    Parameter(metavar="CODE", negative_iterable="", help="load a model that names this code of your own, file.py:name"),
]
"""The option --trust."""

Model = Annotated[Path, Parameter(help="the model's directory")]
"""The argument MODEL."""

Version = Annotated[int | None, Parameter(help="of the model (default: the current one)")]
"""The option --version of commands that read a model."""

MIN_TEXT_WIDTH = 10
"""A narrow terminal folds the text of a column, but not to less than this."""
MAX_PATH = 300
"""Characters of a path that an error message shows."""
MAX_REMARKS = 10
"""Remarks on images that are printed."""
CLOSE_COLUMNS = 12
"""A table of more columns than this has one space between them instead of two."""


def printable(text: object, keep: str = "") -> str:
    r"""Return text for a terminal: characters that control one, or reverse its direction, are escaped.

    Args:
        text: The text, or a value such as a path. A file's name may hold any character, and so may a class's.
        keep: Control characters that stay as they are.

    >>> printable("né[0m"), printable("\x1b[0m\n"), printable("a\u202eb\n", keep="\n")
    ('né[0m', '\\x1b[0m\\n', 'a\\u202eb\n')
    """
    return "".join(
        one if one.isprintable() or one in keep else one.encode("unicode_escape").decode() for one in str(text)
    )


def plain(text: object) -> str:
    r"""Return text that a console prints as it is: neither markup nor control characters take effect.

    >>> plain("[/b]\x1b")
    '\\[/b]\\x1b'
    """
    return escape(printable(text))


class _Console(Console):
    """A console that never cuts lines: a terminal wraps those that are too long. Control characters are escaped."""

    def print(self, *objects: Any, crop: bool = False, **options: Any) -> None:
        shown = (printable(one, keep="\n") if isinstance(one, str) else one for one in objects)
        super().print(*shown, crop=crop, **options)


class _Table(Table):
    """A table that is never narrower than its cells need, even if the terminal is. Control characters are escaped."""

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        super().add_row(*(printable(cell, keep="\n") if isinstance(cell, str) else cell for cell in cells), **options)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        needed = sum(map(self._least_width, self.columns)) + (len(self.columns) - 1) * (1 + self.padding[1])
        return super().__rich_console__(console, options.update(max_width=max(needed, options.max_width)))

    def _least_width(self, column: Column) -> int:
        width = max(cell_len(str(cell)) for cell in (column.header, *column.cells))
        return width if column.no_wrap else min(width, MIN_TEXT_WIDTH)


def console() -> Console:
    """Return a console for stdout; into a pipe or a file it writes lines of any length."""
    terminal = sys.stdout.isatty()
    return _Console(highlight=False, soft_wrap=not terminal, width=None if terminal else 240)


def json_line(**value: Any) -> None:
    """Print `value` as a JSON object on one line, and flush."""
    print(dumps(value, default=str), flush=True)


def table(*columns: str, words: int = 1, title: str | None = None) -> Table:
    """Return an empty table whose first `words` columns hold text and whose other columns hold numbers."""
    empty = _Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, title=title)
    empty.title_justify, empty.title_style = "left", "bold"
    empty.padding = (0, int(len(columns) <= CLOSE_COLUMNS), 0, 0)
    for index, column in enumerate(columns):
        if index < words:
            empty.add_column(column, overflow="fold")
        else:
            empty.add_column(column, justify="right", no_wrap=True)
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


def percent(value: float | None, decimals: int = 1) -> str:
    """Return a percentage as text, a dash for None.

    >>> percent(66.666), percent(66.666, decimals=0), percent(None)
    ('66.7 %', '67 %', '-')
    """
    return "-" if value is None else f"{value:.{decimals}f} %"


def print_remarks(remarks: Sequence["Remark"], file: TextIO) -> None:
    """Print the first `MAX_REMARKS` remarks on images, and how many more there are."""
    for remark in remarks[:MAX_REMARKS]:
        print(f"{printable(remark.path)}: {printable(remark.reason)}", file=file)
    if len(remarks) > MAX_REMARKS:
        print(f"... and {len(remarks) - MAX_REMARKS} more such remarks", file=file)


def check_output(option: str, path: Path) -> None:
    """Raise UserError if a file can't be written to `path`; nothing is left behind. Work of hours may precede it.

    Args:
        option: The name of the option that gave the path, for the message.
        path: The file, whose folders need not exist yet.
    """
    try:
        if not path.name or path.is_dir():
            raise IsADirectoryError(EISDIR, "a folder")
        folder = next(one for one in path.parents if one.exists())
        missing = path.relative_to(folder).parts[0]
        for name in (path.name, missing):
            (folder / f".{name}.part").exists()  # too long a name is an error
        with TemporaryFile(dir=folder):
            pass
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"{option}: {shortened(path)} can't be written ({reason}); give another file") from None


def shortened(path: object) -> str:
    """Return a path, or the first and the last characters of a long one."""
    text = str(path)
    return text if len(text) <= MAX_PATH else f"{text[: MAX_PATH // 2]}...{text[-MAX_PATH // 2 :]}"


def require_plotly(option: str) -> None:
    """Raise UserError if plotly, which pages need, is not installed."""
    if not find_spec("plotly"):
        raise UserError(f"{option}: plotly is missing; install it with pip install 'ssil[report]'")


def require_studio(command: str) -> None:
    """Raise UserError if a package of the server is not installed."""
    for package in ("fastapi", "uvicorn", "python_multipart", "jinja2", "prometheus_client"):
        if not find_spec(package):
            raise UserError(f"{command}: {package} is missing; install it with pip install 'ssil[studio]'")


def is_first_process() -> bool:
    """Return whether this is the first of all processes on all nodes, as torchrun, Slurm or Lightning number them."""
    ranks = ("RANK", "SLURM_PROCID", "NODE_RANK", "LOCAL_RANK")
    return all(os.environ.get(rank, "0") == "0" for rank in ranks)
