"""Ctrl-C and SIGTERM: the first lets a run reach its next step and keep its state, the second stops it at once.

Every interrupt ends as a KeyboardInterrupt, whose message (what is kept, how to go on) `ssil.cli.main` prints before
it returns exit code 130.
"""

import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Self


class Interrupts(ExitStack):
    """A context in which SIGINT and SIGTERM raise KeyboardInterrupt; with `training`, the first sets `requested`."""

    training = requested = False

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self.callback(signal.signal, number, signal.signal(number, self._handle))
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested or not self.training:
            raise KeyboardInterrupt
        self.requested = True
        print("stopping after the next step; Ctrl-C again stops at once", file=sys.stderr)


@contextmanager
def explained_interrupt(explain: Callable[[], str]) -> Iterator[None]:
    """Give a KeyboardInterrupt the message that `explain` returns at that moment."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(explain()) from None


def what_a_run_keeps(out: Path | None) -> str:
    """Return the message for an interrupted run: what is kept in `out`, and the command that goes on."""
    if out is None:
        return "without --out nothing is kept"
    if not out.exists():
        return "nothing had been done yet"
    return f"the last checkpoint is kept in {out}; go on with: {shlex.join(['ssil', *sys.argv[1:]])}"
