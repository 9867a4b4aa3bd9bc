"""Ctrl-C: the first asks for a stop that keeps the state, the second stops at once."""

import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """While it is entered, SIGINT and SIGTERM only set `requested`, once training has begun and the first time."""

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
def saying_how_to_go_on(out: Path | None) -> Iterator[None]:
    """Give an interrupt the line that says what is kept."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_kept(out)) from None


def _kept(out: Path | None) -> str:
    if out is None:
        return "without --out nothing is kept"
    if not out.exists():
        return "nothing had been done yet"
    return f"the last checkpoint is kept in {out}; go on with: {shlex.join(['ssil', *sys.argv[1:]])}"
