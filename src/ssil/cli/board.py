"""Many runs on a terminal: a live table, a line each elsewhere, the results at the end."""

import shlex
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table

from ssil.benchmark.estimates import estimate
from ssil.benchmark.grid.cells import Cell, finished
from ssil.benchmark.grid.forecast import expected, probe, remaining
from ssil.benchmark.grid.process_pool import GridObserver, Outcome, carry_out
from ssil.benchmark.record import Record
from ssil.benchmark.results import Run, variants
from ssil.cli.terminal import console, table
from ssil.cli.terminal_tables import seconds
from ssil.core.errors import UserError
from ssil.learning.metrics import newest_share

if TYPE_CHECKING:
    from ssil.benchmark.grid.cluster import Cluster  # brings ray, which few have

RECENT = 8
"""How many of the runs that ended last are shown."""


def carry_out_left(
    cells: Sequence[Cell], root: Path, jobs: int, dry_run: bool = False, cluster: "Cluster | None" = None
) -> bool:
    """Run those cells that are not done, or say what would be run; whether all are done now."""
    if jobs < 1:
        raise UserError(f"jobs: {jobs} is not a number of processes; give 1 or more")
    with cluster.joined() if cluster else nullcontext(jobs) as at_once:
        return _carry_out_left(cells, root, at_once, dry_run, cluster)


def _carry_out_left(cells: Sequence[Cell], root: Path, jobs: int, dry_run: bool, cluster: "Cluster | None") -> bool:
    done = {cell: record for cell in cells if (record := finished(cell, root))}
    known = {cell: record.summary.seconds for cell, record in done.items() if record.summary}
    left = [cell for cell in cells if cell not in done]
    if dry_run:
        _foresee(left, len(done), known, root, jobs)
        return False
    board = Board(left, known, jobs) if sys.stdout.isatty() else Lines(left, known, jobs)
    with _termination_interrupts(), _how_to_go_on(root), board.shown():
        outcomes = cluster.carry_out(left, root, board) if cluster else carry_out(left, root, jobs, board)
    failed = [outcome for outcome in outcomes if outcome.code]
    for outcome in failed:
        print(f"failed: {outcome.cell.place}: {outcome.reason}", file=sys.stderr)
    return not failed


def _foresee(left: Sequence[Cell], done: int, known: Mapping[Cell, float], root: Path, jobs: int) -> None:
    screen = console()
    if left and not known and (guess := probe(left[0])):
        known = {left[0]: guess}
    for cell in left:
        time_needed = expected(cell, known)
        about = f"  # about {seconds(time_needed)}" if time_needed else ""
        screen.print(f"{shlex.join(cell.command(root))}{about}", soft_wrap=True, markup=False)
    total = remaining(dict.fromkeys(left, 0.0), known, jobs)
    cost = f"about {seconds(total)}, {jobs} at once" if total is not None else "nobody knows how long they take"
    screen.print(f"{done} of {done + len(left)} runs are done" + (f"; the others: {cost}" if left else ""))


class Lines(GridObserver):
    """A line when a run begins and when it ends."""

    def __init__(self, cells: Sequence[Cell], known: Mapping[Cell, float], jobs: int) -> None:
        self.cells, self.known, self.jobs = list(cells), dict(known), jobs
        self.running: dict[Cell, float] = {}
        """Since when each has been at its present task."""
        self.tasks: dict[Cell, dict[int, dict[str, Any]]] = {}
        """Those that are done, by number."""
        self.outcomes: list[Outcome] = []

    def shown(self) -> Any:
        """While it is entered, it is on the screen."""
        return nullcontext()

    def started(self, cell: Cell) -> None:
        """Say so."""
        self.running[cell] = time.monotonic()
        self.say(f"{cell.place}: begins")

    def learnt(self, cell: Cell, task: dict[str, Any]) -> None:
        """Keep it."""
        self.tasks.setdefault(cell, {})[task["task"]] = task
        self.running[cell] = time.monotonic()

    def lost(self, cell: Cell) -> None:
        """Say so."""
        del self.running[cell]
        self.say(f"{cell.place}: its worker died; it goes on from its last checkpoint")

    def ended(self, outcome: Outcome) -> None:
        """Say how, and how long the rest takes."""
        spent = self.spent(outcome.cell)
        self.running.pop(outcome.cell, None)
        self.outcomes.append(outcome)
        if not outcome.code:
            self.known[outcome.cell] = spent
        self.say(f"{outcome.cell.place}: {self._end(outcome)}, {seconds(spent)}; {self.status()}")

    def say(self, line: str) -> None:
        """On a line of its own, at once."""
        print(line, flush=True)

    def status(self) -> str:
        """How many are done, and how long the others take."""
        ended = {outcome.cell for outcome in self.outcomes}
        left = {cell: self.spent(cell) for cell in self.cells if cell not in ended}
        time_left = remaining(left, dict(self.known), self.jobs)
        about = f", about {seconds(time_left)} left" if time_left else ""
        return f"{len(self.outcomes)} of {len(self.cells)} runs ended{about}"

    def spent(self, cell: Cell) -> float:
        """Seconds that it has trained, in this process and before."""
        began = self.running.get(cell)
        done: float = sum(task["seconds"] for task in [*self.tasks.get(cell, {}).values()])
        return done + (time.monotonic() - began if began else 0.0)

    def newest(self, cell: Cell) -> tuple[str, str]:
        """The last task that is done, and its accuracy."""
        tasks = [*self.tasks.get(cell, {}).values()]
        return (str(tasks[-1]["task"]), f"{tasks[-1]['top1']:.1f}") if tasks else ("-", "-")

    def _end(self, outcome: Outcome) -> str:
        if outcome.code == 130:
            return "stopped, its state is kept"
        if outcome.code:
            return f"failed ({outcome.reason or f'exit code {outcome.code}'})"
        return f"done, last top-1 {self.newest(outcome.cell)[1]}"


class Board(Lines):
    """The runs at work and those that ended last, redrawn in place, from a thread of its own."""

    def shown(self) -> Live:
        """The live table."""
        screen = console()
        return Live(get_renderable=self.view, console=screen, refresh_per_second=2, transient=True)

    def say(self, line: str) -> None:
        """The table says it."""

    def view(self) -> RenderableType:
        """What is on the screen."""
        made = table("run", "state", "task", "top-1", "time", words=2)
        for outcome in self.outcomes[-RECENT:]:
            spent = seconds(self.spent(outcome.cell))
            made.add_row(str(outcome.cell.place), self._state(outcome), *self.newest(outcome.cell), spent)
        for cell in [*self.running]:
            made.add_row(str(cell.place), "[bold]running", *self.newest(cell), seconds(self.spent(cell)))
        return Group(made, self.status())

    def _state(self, outcome: Outcome) -> str:
        return self._end(outcome).partition(",")[0].partition(" (")[0]


def results(runs: Sequence[Run], title: str) -> Table:
    """Means and deviations over the seeds, a row a variant."""
    made = table("run", "seeds", "average top-1", "average top-5", "last top-1", "on the newest", title=title)
    for name, members in variants(runs).items():
        made.add_row(name, str(len(members)), *_numbers([run.record for run in members]))
    return made


def _numbers(records: Sequence[Record]) -> Iterator[str]:
    summaries = [record.summary for record in records if record.summary]
    for field in ("average_top1", "average_top5", "last_top1"):
        yield estimate([getattr(summary, field) for summary in summaries]).text()
    yield f"{estimate([newest_share(record.tasks[-1].confusion) for record in records]).text()} %"


@contextmanager
def _termination_interrupts() -> Iterator[None]:
    """Let SIGTERM do what Ctrl-C does."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _how_to_go_on(root: Path) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"what is done is kept in {root}; the same command goes on") from None
