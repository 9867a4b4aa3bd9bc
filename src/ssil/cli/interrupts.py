"""Ctrl-C and SIGTERM: the first lets a run reach its next step and keep its state, the second stops it at once.

Every interrupt ends as a KeyboardInterrupt, whose message (what is kept, how to go on) `ssil.cli.main` prints before
it returns exit code 130.
"""

import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """A context in which the first signal only sets `requested`, provided that `training` is set."""

    def __init__(self) -> None:
        self.training = self.requested = False

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested or not self.training:
            raise KeyboardInterrupt
        self.requested = True
        print("stopping after the next step; Ctrl-C again stops at once", file=sys.stderr)


@contextmanager
def sigterm_as_ctrl_c() -> Iterator[None]:
    """Let SIGTERM raise a KeyboardInterrupt, as Ctrl-C does."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


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
