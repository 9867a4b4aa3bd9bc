"""How long cells are going to take, from how long others took, or from a first look at one."""

import time
from collections.abc import Mapping
from contextlib import suppress
from statistics import fmean

from ssil.benchmark.config import make_config
from ssil.benchmark.grid.cells import Cell
from ssil.benchmark.record import Record
from ssil.benchmark.runner import RunObserver, run, share_done
from ssil.learning.task import Pace


def expected(cell: Cell, known: Mapping[Cell, float]) -> float | None:
    """Seconds of the cells most like it that are known: with another seed, in another scenario, with another method.

    >>> ssil, ft = (Cell("base", row, 0, {}) for row in ("ssil", "ft"))
    >>> expected(Cell("base", "ssil", 1, {}), {ssil: 10.0, ft: 30.0})
    10.0
    >>> expected(Cell("base", "wa", 1, {}), {ssil: 10.0, ft: 30.0})
    20.0
    """
    likes = (
        [value for other, value in known.items() if (other.scenario, other.row) == (cell.scenario, cell.row)],
        [value for other, value in known.items() if other.row == cell.row],
        [value for other, value in known.items() if other.scenario == cell.scenario],
        list(known.values()),
    )
    return next((fmean(values) for values in likes if values), None)


def remaining(spent: Mapping[Cell, float], known: Mapping[Cell, float], jobs: int) -> float | None:
    """Seconds until all of these, each with so many behind it, are done by so many processes at once.

    >>> ssil, ft, wa = (Cell("base", row, 0, {}) for row in ("ssil", "ft", "wa"))
    >>> remaining({ssil: 300.0, wa: 20.0}, {ft: 60.0}, 2)
    40.0
    """
    each = {cell: expected(cell, known) for cell in spent}
    left = [max(0.0, seconds - spent[cell]) for cell, seconds in each.items() if seconds]
    return max(sum(left) / jobs, *left, 0.0) if len(left) == len(spent) else None


class _Probe(RunObserver):
    """Stops a run some seconds after its first step."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.began, self.first, self.share, self.spent = seconds, 0.0, 0.0, 0.0, 0.0

    def started(self, record: Record) -> None:
        self.record = record

    def learnt(self, record: Record) -> None:
        self.record = record

    def pace(self, task: int, pace: Pace) -> None:
        now, self.share = time.monotonic(), share_done(self.record, pace)
        if not self.began:
            self.began, self.first = now, self.share
        self.spent = now - self.began

    def should_stop(self) -> bool:
        return self.spent > self.seconds


def probe(cell: Cell, seconds: float = 5.0) -> float | None:
    """A rough forecast of a cell's seconds: its first steps are run, and nothing is kept of them."""
    observer = _Probe(seconds)
    with suppress(KeyboardInterrupt):
        run(make_config({"threads": 1, **cell.settings, "seed": cell.seed}), observer)
    moved = observer.share - observer.first
    return observer.spent / moved if moved else None
