"""Progress of a command in three forms: live bars on a terminal, plain lines elsewhere, nothing with `--json`.

`progress_display` chooses the form. `counting` counts the images of a data set; `run_display` and `grid_display` show
the progress of runs on the same displays.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Self, TextIO

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ssil.cli.terminal import console, printable

INTERVAL = 5.0
"""Seconds between two plain lines about work that is not finished."""

Above = Callable[[int], RenderableType]
"""Return what a live display shows above its bars on a terminal of this height."""


class ProgressDisplay(ExitStack):
    """Show nothing: the form for `--json`, and the base class of the other forms."""

    def update(self, name: str, done: float, total: float | None, note: str = "", line: str = "", bar: int = 0) -> None:
        """Show how much of the work `name` is done.

        Args:
            name: The work; another name than before starts a new estimate of the time left.
            done: The part that is done, between 0 and `total`.
            total: The whole, or None while it is unknown.
            note: Details that a bar shows at its right end.
            line: What the form with plain lines prints, now and then, in place of a bar.
            bar: The number of the bar.
        """

    def log(self, text: str) -> None:
        """Print `text` if the display has no live form."""

    def message(self, text: str) -> None:
        """Print `text`."""


class LiveBars(ProgressDisplay):
    """Bars below `above`, redrawn in place and removed at the end."""

    def __init__(self, above: Above | None = None) -> None:
        super().__init__()
        self.screen, self.above = console(), above
        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeRemainingColumn(elapsed_when_finished=True),
            TextColumn("{task.fields[note]}"),
            console=self.screen,
            speed_estimate_period=60,
            expand=True,
        )

    def __enter__(self) -> Self:
        live = Live(get_renderable=self._view, console=self.screen, refresh_per_second=4, transient=True)
        self.live = self.enter_context(live)
        return self

    def update(self, name: str, done: float, total: float | None, note: str = "", line: str = "", bar: int = 0) -> None:
        """Move a bar."""
        while len(self.bars.task_ids) <= bar:
            self.bars.add_task("", total=None, visible=False, note="")
        row = self.bars.task_ids[bar]
        if self.bars.tasks[bar].description != name:
            self.bars.reset(row, total=total, visible=True, description=name)
        self.bars.update(row, completed=done, total=total, note=note)

    def message(self, text: str) -> None:
        """Print `text` above all that is redrawn."""
        self.screen.print(text)

    def _view(self) -> RenderableType:
        parts = [self.above(self.screen.height)] if self.above else []
        width = self.screen.width - len("^C")  # which the terminal prints behind the last bar
        bars = [Constrain(self.bars, width)] if self.bars.task_ids else []
        return Group(*parts, *bars)


class PlainLines(ProgressDisplay):
    """Lines for a file or a pipe; those about unfinished work at least `INTERVAL` seconds apart."""

    def __init__(self, file: TextIO) -> None:
        super().__init__()
        self.file, self._printed = file, time.monotonic()

    def update(self, name: str, done: float, total: float | None, note: str = "", line: str = "", bar: int = 0) -> None:
        """Print `line` if it is time to."""
        if line and time.monotonic() - self._printed >= INTERVAL:
            self.log(line)

    def log(self, text: str) -> None:
        """Print `text`."""
        self._printed = time.monotonic()
        print(printable(text, keep="\n"), file=self.file, flush=True)

    message = log


def progress_display(silent: bool = False, above: Above | None = None, file: TextIO | None = None) -> ProgressDisplay:
    """Return the form of display that fits where stdout goes.

    Args:
        silent: Whether to show nothing.
        above: What the live form shows above its bars.
        file: Where plain lines go, by default stdout.
    """
    if silent:
        return ProgressDisplay()
    return LiveBars(above) if sys.stdout.isatty() else PlainLines(file or sys.stdout)


class Speed:
    """Images per second since the first call; images done before that call don't count."""

    def __init__(self) -> None:
        self._first: tuple[int, float] | None = None

    def __call__(self, images: int) -> float:
        """Return the speed now that `images` are done, 0 at the first call."""
        now = time.monotonic()
        self._first = self._first or (images, now)
        return (images - self._first[0]) / max(now - self._first[1], 1e-9)


@contextmanager
def counting(what: str, json: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Yield a callback `(done, total)` that shows how many images of a data set are done; plain lines go to stderr."""
    speed = Speed()

    def show(done: int, total: int) -> None:
        if per_second := speed(done):
            note, left = f"{per_second:,.0f} images/s", timedelta(seconds=round((total - done) / per_second))
            line = f"{what}: {done:,} of {total:,} images, {note}, {left} left"
            display.update(what, done, total, note, line)
        else:
            display.update(what, done, total)

    with progress_display(silent=json, file=sys.stderr) as display:
        display.update(what, 0, None)
        yield show
