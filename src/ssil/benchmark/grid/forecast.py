"""How long the cells of a grid are going to take, from finished cells or from the first steps of one."""

import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from statistics import fmean

from ssil.benchmark.config import make_config
from ssil.benchmark.grid.cells import Cell, finished_record
from ssil.benchmark.record import Record
from ssil.benchmark.runner import RunObserver, run, share_done
from ssil.core.errors import UserError
from ssil.learning.task import ProgressReport


def expected_seconds(cell: Cell, known: Mapping[Cell, float]) -> float | None:
    """Return the mean duration of the known cells most similar to this one, or None if none is known.

    Most similar are those that differ in the seed only, then those of the same row, then of the same scenario.

    >>> ssil, ft = (Cell("base", row, 0, {}) for row in ("ssil", "ft"))
    >>> expected_seconds(Cell("base", "ssil", 1, {}), {ssil: 10.0, ft: 30.0})
    10.0
    >>> expected_seconds(Cell("base", "wa", 1, {}), {ssil: 10.0, ft: 30.0})
    20.0
    """
    similar = (
        [value for other, value in known.items() if (other.scenario, other.row) == (cell.scenario, cell.row)],
        [value for other, value in known.items() if other.row == cell.row],
        [value for other, value in known.items() if other.scenario == cell.scenario],
        list(known.values()),
    )
    return next((fmean(values) for values in similar if values), None)


def remaining_seconds(spent: Mapping[Cell, float], known: Mapping[Cell, float], jobs: int) -> float | None:
    """Return the time until all cells of `spent` are finished by `jobs` processes, or None if it can't be told.

    Args:
        spent: The seconds that each unfinished cell has been trained.
        known: The seconds that finished cells took.
        jobs: The number of runs at once.

    >>> ssil, ft, wa = (Cell("base", row, 0, {}) for row in ("ssil", "ft", "wa"))
    >>> remaining_seconds({ssil: 300.0, wa: 20.0}, {ft: 60.0}, 2)
    40.0
    """
    each = {cell: expected_seconds(cell, known) for cell in spent}
    left = [max(0.0, seconds - spent[cell]) for cell, seconds in each.items() if seconds]
    return max(sum(left) / jobs, *left, 0.0) if len(left) == len(spent) else None


def seconds_per_pass(passes: Mapping[Cell, int], root: Path) -> float | None:
    """Return the seconds of training by forward pass of an image, of finished cells, or else of a probe of the first.

    Args:
        passes: The passes of each cell, see `TrainingBudget`.
        root: The directory that holds the run directories.
    """
    done = {cell: record for cell in passes if (record := finished_record(cell, root))}
    spent = {cell: record.summary.training_seconds for cell, record in done.items() if record.summary}
    if not spent and passes:
        first = next(iter(passes))
        with suppress(UserError):  # its data may be elsewhere
            spent = {first: guess} if (guess := probe(first)) else {}
    return sum(spent.values()) / sum(passes[cell] for cell in spent) if spent else None


class _Probe(RunObserver):
    """Stops a run `seconds` after its first step."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.began, self.first, self.share, self.spent = seconds, 0.0, 0.0, 0.0, 0.0

    def started(self, record: Record) -> None:
        self.record = record

    def learnt(self, record: Record) -> None:
        self.record = record

    def progress(self, task: int, report: ProgressReport) -> None:
        now, self.share = time.monotonic(), share_done(self.record, report)
        if not self.began:
            self.began, self.first = now, self.share
        self.spent = now - self.began

    def should_stop(self) -> bool:
        return self.spent > self.seconds


@cache
def probe(cell: Cell, seconds: float = 5.0) -> float | None:
    """Return a rough forecast of a cell's seconds: train it for some `seconds`, and keep nothing of it."""
    observer = _Probe(seconds)
    with suppress(KeyboardInterrupt):
        run(make_config({"threads": 1, **cell.settings, "seed": cell.seed}), observer)
    trained = observer.share - observer.first
    return observer.spent / trained if trained else None
