"""What a run shows on a terminal while it goes: the results so far above two bars, the stream's and the task's."""

from types import TracebackType
from typing import Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ssil.benchmark.record import Record
from ssil.benchmark.runner import share_done
from ssil.cli.terminal import console
from ssil.cli.terminal_tables import results, title
from ssil.cli.watch import Reporter, phase
from ssil.learning.task import Pace

UNIT = 10_000
"""What a bar counts for a whole stream, and for a whole task."""


class Bars(Reporter):
    """Redrawn in place, and gone at the end. The stream's bar counts `runs` streams."""

    def __init__(self, runs: int = 1) -> None:
        super().__init__()
        self.screen = console()
        self.runs, self.run = runs, 0
        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeRemainingColumn(elapsed_when_finished=True),
            TextColumn("{task.fields[note]}"),
            speed_estimate_period=60,
        )
        self.stream = self.bars.add_task("reading the data", total=None, note="")
        self.current = self.bars.add_task("", total=UNIT, note="", visible=False)
        self.live = Live(get_renderable=self._view, console=self.screen, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        super().__enter__()
        self.live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.live.stop()
        super().__exit__(kind, error, at)

    def reading(self, done: int, files: int) -> None:
        """Count the image files that are examined."""
        self.bars.update(self.stream, completed=done, total=files, description="examining image files")

    def started(self, record: Record) -> None:
        """Set the stream's bar to what is done."""
        super().started(record)
        self.run += 1
        self.bars.reset(self.stream, total=self.runs * UNIT, completed=self._done(), description=self._name())

    def begun(self, pace: Pace) -> None:
        """Begin the task's bar."""
        name = f"task {self.task}/{len(self.record.task_sizes)}"
        self.bars.reset(self.current, completed=round(UNIT * pace.done), visible=True, description=name)

    def resumed(self, where: str) -> None:
        """Say where the run goes on, above all else."""
        self.screen.print(where)

    def pace(self, task: int, pace: Pace) -> None:
        """Move both bars."""
        super().pace(task, pace)
        epoch = min(pace.epoch + 1, pace.epochs)
        note = f"{phase(pace)}epoch {epoch}/{pace.epochs}, {self.speed(pace):.0f} images/s"
        self.bars.update(self.current, completed=round(UNIT * pace.done), note=note)
        self.bars.update(self.stream, completed=self._done(pace))

    def above(self) -> RenderableType:
        """What stands above the bars: the newest results, as many as fit."""
        return Group(f"[bold]{title(self.record)}", results(self.record, last=max(1, self.screen.height - 10)))

    def _done(self, pace: Pace | None = None) -> int:
        """Streams done: those before this one, and its share."""
        return round((self.run - 1 + share_done(self.record, pace)) * UNIT)

    def _name(self) -> str:
        return f"run {self.run}/{self.runs}" if self.runs > 1 else "stream"

    def _view(self) -> RenderableType:
        return Group(self.above(), self.bars) if self.run else self.bars
