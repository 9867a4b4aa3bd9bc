"""Carry out the runs of a grid that are missing and show them: a live table on a terminal, plain lines elsewhere."""

import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table

from ssil.benchmark.grid.cells import Cell, finished_record
from ssil.benchmark.grid.forecast import expected_seconds, probe, remaining_seconds
from ssil.benchmark.grid.process_pool import GridObserver, Outcome, run_cells
from ssil.benchmark.record import Record
from ssil.benchmark.results import Run, estimate, variants
from ssil.cli.interrupts import Interrupts, explained_interrupt
from ssil.cli.progress import progress_display
from ssil.cli.run_tables import kept_text
from ssil.cli.terminal import console, duration, plain, printable, table
from ssil.core.errors import UserError
from ssil.learning.metrics import newest_share

if TYPE_CHECKING:
    from ssil.benchmark.grid.cluster import Cluster  # needs ray, an optional package

RECENT = 8
"""How many of the runs that ended last the live table shows."""


def run_missing(
    cells: Sequence[Cell],
    root: Path,
    jobs: int,
    dry_run: bool = False,
    cluster: "Cluster | None" = None,
    threads: int | None = None,
) -> bool:
    """Run the cells that are not finished, or with `dry_run` print what would be run.

    Args:
        cells: The runs of the grid.
        root: The directory that holds the run directories.
        jobs: How many runs to train at once, without a cluster.
        dry_run: Whether to print commands and times instead of running.
        cluster: Where to run instead of in processes of this machine.
        threads: The CPU threads of each run, instead of those in its settings.

    Returns:
        Whether all cells are finished now.

    Raises:
        UserError: If `jobs` or `threads` is not positive.
    """
    if jobs < 1:
        raise UserError(f"jobs: {jobs} is not a number of processes; give 1 or more")
    if threads is not None:
        cells = _with_threads(cells, threads)
    done = {cell: record for cell in cells if (record := finished_record(cell, root))}
    known = {cell: record.summary.seconds for cell, record in done.items() if record.summary}
    missing = [cell for cell in cells if cell not in done]
    with cluster.connected() if cluster else nullcontext(jobs) as at_once:
        if dry_run:
            _print_plan(missing, len(done), known, root, at_once)
            return False
        return _run_all(missing, known, root, at_once, cluster)


def _with_threads(cells: Sequence[Cell], threads: int) -> list[Cell]:
    if threads < 1:
        raise UserError(f"threads: {threads} is not a number of threads; give 1 or more")
    return [replace(cell, settings={**cell.settings, "threads": threads}) for cell in cells]


def _run_all(
    cells: Sequence[Cell], known: Mapping[Cell, float], root: Path, jobs: int, cluster: "Cluster | None"
) -> bool:
    """Run the cells, print those that failed to stderr, and return whether none did."""
    progress = GridProgress(cells, known, jobs)
    kept = f"what is done is kept in {root}; the same command goes on"
    with Interrupts(), explained_interrupt(lambda: kept), progress.display:
        outcomes = cluster.run_cells(cells, root, progress) if cluster else run_cells(cells, root, jobs, progress)
    failed = [outcome for outcome in outcomes if outcome.code]
    for outcome in failed:
        print(f"failed: {outcome.cell.folder}: {printable(outcome.reason)}", file=sys.stderr)
    return not failed


def _print_plan(cells: Sequence[Cell], done: int, known: Mapping[Cell, float], root: Path, jobs: int) -> None:
    """Print the command and the expected time of each run, and the time of all."""
    screen = console()
    if cells and not known and (guess := _guessed(cells[0])):
        known = {cells[0]: guess}
    for cell in cells:
        time_needed = expected_seconds(cell, known)
        about = f"  # about {duration(time_needed)}" if time_needed else ""
        screen.print(f"{shlex.join(cell.command(root))}{about}", soft_wrap=True, markup=False)
    total = remaining_seconds(dict.fromkeys(cells, 0.0), known, jobs)
    cost = f"about {duration(total)}, {jobs} at once" if total is not None else "their duration is unknown"
    screen.print(f"{done} of {done + len(cells)} runs are done" + (f"; the others: {cost}" if cells else ""))


def _guessed(cell: Cell) -> float | None:
    """Return a forecast of a cell's seconds; if the cell can't be tried, such as without its data, say why."""
    try:
        return probe(cell)
    except UserError as error:
        print(f"no forecast: {printable(error)}", file=sys.stderr)
        return None


class GridProgress(GridObserver):
    """Show the runs of a grid: those that are training, and those that ended last.

    Args:
        cells: The runs to carry out.
        known: The seconds that finished runs took, from which the time left is estimated.
        jobs: How many runs train at once.
    """

    def __init__(self, cells: Sequence[Cell], known: Mapping[Cell, float], jobs: int) -> None:
        self.cells, self.known, self.jobs = list(cells), dict(known), jobs
        self.display = progress_display(above=self._table)
        self.running: dict[Cell, float] = {}
        """When each running cell began its current task."""
        self.tasks: dict[Cell, dict[int, dict[str, Any]]] = {}
        """The records of each cell's finished tasks, by task number."""
        self.outcomes: list[Outcome] = []

    def started(self, cell: Cell) -> None:
        """Show that a run has started."""
        self.running[cell] = time.monotonic()
        self.display.log(f"{cell.folder}: begins")

    def learnt(self, cell: Cell, task: dict[str, Any]) -> None:
        """Keep the record of a finished task."""
        self.tasks.setdefault(cell, {})[task["task"]] = task
        self.running[cell] = time.monotonic()

    def lost(self, cell: Cell) -> None:
        """Show that a run's worker died."""
        del self.running[cell]
        self.display.log(f"{cell.folder}: its worker died; it goes on from its last checkpoint")

    def ended(self, outcome: Outcome) -> None:
        """Show how a run ended, and how long the others will take."""
        cell, seconds = outcome.cell, self._seconds(outcome.cell)
        self.running.pop(cell, None)
        self.outcomes.append(outcome)
        if not outcome.code:
            self.known[cell] = seconds
        self.display.log(f"{cell.folder}: {self._end(outcome)}, {duration(seconds)}; {self._status()}")

    def _status(self) -> str:
        """Return how many runs have ended, and about how long the others will take."""
        ended = {outcome.cell for outcome in self.outcomes}
        left = {cell: self._seconds(cell) for cell in self.cells if cell not in ended}
        time_left = remaining_seconds(left, dict(self.known), self.jobs)
        about = f", about {duration(time_left)} left" if time_left else ""
        return f"{len(self.outcomes)} of {len(self.cells)} runs ended{about}"

    def _seconds(self, cell: Cell) -> float:
        """Return for how long a run has trained, in this process and before."""
        began = self.running.get(cell)
        tasks: float = sum(task["seconds"] for task in [*self.tasks.get(cell, {}).values()])
        return tasks + (time.monotonic() - began if began else 0.0)

    def _newest(self, cell: Cell) -> tuple[str, str]:
        """Return the number and the accuracy of a run's last finished task."""
        tasks = [*self.tasks.get(cell, {}).values()]
        return (str(tasks[-1]["task"]), f"{tasks[-1]['top1']:.1f}") if tasks else ("-", "-")

    def _end(self, outcome: Outcome) -> str:
        if outcome.code == 130:
            return "stopped, its state is kept"
        if outcome.code:
            return f"failed ({outcome.reason or f'exit code {outcome.code}'})"
        return f"done, last top-1 {self._newest(outcome.cell)[1]}"

    def _table(self, height: int) -> RenderableType:
        """Return the live table; it is drawn by a thread of its own, so that it reads copies."""
        rows = table("run", "state", "task", "top-1", "time", words=2)
        recent = [(one.cell, self._end(one).partition(",")[0].partition(" (")[0]) for one in self.outcomes[-RECENT:]]
        for cell, state in [*recent, *((cell, "[bold]running") for cell in [*self.running])]:
            rows.add_row(plain(cell.folder), state, *self._newest(cell), duration(self._seconds(cell)))
        return Group(rows, self._status())


def seed_table(runs: Sequence[Run], title: str) -> Table:
    """Return a table of means and standard deviations over the seeds, one row per variant."""
    rows = table(
        "run", "seeds", "average top-1", "average top-5", "last top-1", "on newest task", "MB kept", title=title
    )
    for name, members in variants(runs).items():
        rows.add_row(plain(name), str(len(members)), *_seed_cells([run.record for run in members]))
    return rows


def _seed_cells(records: Sequence[Record]) -> Iterator[str]:
    summaries = [record.summary for record in records if record.summary]
    for field in ("average_top1", "average_top5", "last_top1"):
        yield estimate([getattr(summary, field) for summary in summaries]).text()
    yield f"{estimate([newest_share(record.tasks[-1].confusion) for record in records]).text()} %"
    yield kept_text(records[0])
