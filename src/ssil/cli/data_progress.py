"""How far a command has come with a set's images: a bar on a terminal, a line now and then elsewhere."""

import sys
import time
from datetime import timedelta
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ssil.cli.terminal import console

EVERY = 5.0
"""Seconds between two plain lines."""


class Count:
    """To be called with the images done and their number. Says nothing: for JSON lines."""

    def __init__(self, what: str) -> None:
        self.what, self.first, self.since = what, -1, 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        pass

    def __call__(self, done: int, total: int) -> None:
        """So many images are done."""

    def speed(self, done: int) -> float:
        """Images a second since the first call, which may have found some done."""
        now = time.monotonic()
        if self.first < 0:
            self.first, self.since = done, now
        return (done - self.first) / max(now - self.since, 1e-9)


class Bar(Count):
    """Redrawn in place, and gone at the end."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=console(),
            speed_estimate_period=60,
            transient=True,
        )
        self.task = self.bars.add_task(what, total=None, note="")

    def __enter__(self) -> Self:
        self.bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.bars.stop()

    def __call__(self, done: int, total: int) -> None:
        """Move the bar."""
        speed = self.speed(done)
        self.bars.update(self.task, completed=done, total=total, note=f"{speed:,.0f} images/s" if speed else "")


class Lines(Count):
    """A line on stderr now and then."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.said = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        """Say how far it is, if it is time to."""
        speed = self.speed(done)
        if time.monotonic() - self.said >= EVERY and speed:
            self.said = time.monotonic()
            left = timedelta(seconds=round((total - done) / speed))
            print(f"{self.what}: {done:,} of {total:,} images, {speed:,.0f} images/s, {left} left", file=sys.stderr)


def counting(what: str, json: bool = False) -> Count:
    """The count that suits where the words go."""
    kind = Count if json else Bar if sys.stdout.isatty() else Lines
    return kind(what)
