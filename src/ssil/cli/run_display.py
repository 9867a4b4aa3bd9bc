"""Carry out a run for `ssil run` and show it: progress while it trains, its results at the end."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Self

from rich.console import Group, RenderableType

from ssil.benchmark.config import RunConfig
from ssil.benchmark.record import Record
from ssil.benchmark.runner import RunObserver, RunObservers, run, share_done
from ssil.benchmark.tracking.tracker import Tracker, tracker
from ssil.cli.interrupts import Interrupts, explained_interrupt, what_a_run_keeps
from ssil.cli.progress import Speed, progress_display
from ssil.cli.run_tables import run_table, run_title, summary_line, task_line, task_table
from ssil.cli.terminal import console, is_first_process, json_line, plain
from ssil.learning.execution import keep_freed_memory
from ssil.learning.registry import configure
from ssil.learning.snapshot import MAIN
from ssil.learning.task import ProgressReport

RunsTable = Callable[[Sequence[Record]], RenderableType]
"""Return a table of runs: those that are finished, and last the one that is training."""


class RunProgress(RunObserver, ExitStack):
    """Show the progress of one run, or of several one after another.

    While it is entered, Ctrl-C waits for the end of a training step.

    Args:
        silent: Whether to show nothing.
        runs: The number of runs.
        runs_table: What a terminal shows above the bars; by default the results of the current run.
    """

    def __init__(self, silent: bool = False, runs: int = 1, runs_table: RunsTable | None = None) -> None:
        super().__init__()
        self.interrupts = Interrupts()
        self.display = progress_display(silent, self._above)
        self.runs, self.runs_table = runs, runs_table
        self.records: list[Record] = []

    def __enter__(self) -> Self:
        self.enter_context(self.interrupts)
        self.enter_context(self.display).update("reading the data", 0, None)
        return self

    def reading(self, done: int, files: int) -> None:
        """Show how many image files have been validated."""
        line = f"validated {done:,} of {files:,} image files"
        self.display.update("validating image files", done, files, line=line)

    def features(self, done: int, images: int) -> None:
        """Show of how many images the features have been computed."""
        line = f"computed the features of {done:,} of {images:,} images"
        self.display.update("computing features", done, images, line=line)

    def started(self, record: Record) -> None:
        """Begin the next run."""
        self.records.append(record)
        self.task, self.was_finished = 0, record.summary is not None
        self.interrupts.training = True
        self.display.log(run_title(record))
        self._update_stream()

    def progress(self, task: int, report: ProgressReport) -> None:
        """Show a finished step."""
        phase = f"{report.phase}, " if report.parts > 1 else ""
        epoch = f"{phase}epoch {min(report.epoch + 1, report.epochs)}/{report.epochs}"
        if task != self.task:
            resumed = not self.task and (self.records[-1].tasks or (report.epoch, report.step) != (0, 1))
            self.task, self.speed = task, Speed()
            if resumed:
                self.display.message(f"going on in task {task}, {epoch}")
        name, speed = f"task {task}/{len(self.records[-1].task_sizes)}", self.speed(report.images)
        line = f"{name}, {epoch}: {speed:.0f} images/s" if speed else ""
        self.display.update(name, report.done, 1, f"{epoch}, {speed:.0f} images/s", line, bar=1)
        self._update_stream(report)

    def learnt(self, record: Record) -> None:
        """Show the results after a task."""
        self.records[-1] = record
        self.display.log(task_line(record))

    def finished(self, records: Mapping[str, Record]) -> None:
        """Keep the records of all scorers of the run that has just ended."""
        self.by_scorer = records

    def should_stop(self) -> bool:
        """Return whether Ctrl-C was pressed."""
        return self.interrupts.requested

    def _update_stream(self, report: ProgressReport | None = None) -> None:
        run = len(self.records)
        name = f"run {run}/{self.runs}" if self.runs > 1 else "stream"
        self.display.update(name, run - 1 + share_done(self.records[-1], report), self.runs)

    def _above(self, height: int) -> RenderableType:
        if not self.records:
            return Group()
        if self.runs_table:
            return self.runs_table(self.records)
        record = self.records[-1]
        return Group(f"[bold]{plain(run_title(record))}", task_table(record, last=max(1, height - 10)))


class JsonRunProgress(RunProgress):
    """Print one JSON object per task, also for tasks that were finished before."""

    def started(self, record: Record) -> None:
        """Print the tasks that are finished already."""
        super().started(record)
        for task in record.tasks:
            json_line(event="task", **task.model_dump(mode="json"))

    def learnt(self, record: Record) -> None:
        """Print the task that has just been finished."""
        super().learnt(record)
        json_line(event="task", **record.tasks[-1].model_dump(mode="json"))


def run_and_show(config: RunConfig, json: bool) -> None:
    """Carry out a run, or go on with it, and print its results. Only the first of several processes prints."""
    keep_freed_memory()
    first, tracked = is_first_process(), _tracker(config, json)
    if first and (unused := _without_effect(config)):
        print(unused, file=sys.stderr)
    progress = JsonRunProgress(silent=True) if json and first else RunProgress(silent=not first)
    with explained_interrupt(lambda: what_a_run_keeps(config.out)), progress, tracked or nullcontext():
        run(config, RunObservers(progress, tracked) if tracked else progress)
    if json and first:
        _print_summaries(progress.by_scorer, config.out)
    elif first:
        _print_results(progress.by_scorer, config.out, "already finished" if progress.was_finished else "finished")


def _without_effect(config: RunConfig) -> str:
    """Return a line on settings of training that were given to a method that trains nothing; "" if there are none."""
    given = config.training
    method = configure(config.method, config.profile, given, config.options, config.increments).method
    named = ", ".join(given)
    return (
        f"{named}: of no effect, as {config.method} trains nothing"
        if given and not method.requirements().training
        else ""
    )


def _tracker(config: RunConfig, json: bool) -> Tracker | None:
    tracked = tracker(config, lambda line: print(line, file=sys.stderr)) if is_first_process() else None
    if tracked and not json:
        console().print(f"tracked by {config.track} (see: {tracked.backend.viewer})", markup=False)
    return tracked


def _print_summaries(records: Mapping[str, Record], out: Path | None) -> None:
    """Print one JSON object per scorer, the method's own last; only the others have the key `scorer`."""
    for scorer, record in reversed([*records.items()]):
        other = {} if scorer == MAIN else {"scorer": scorer}
        summary = record.summary.model_dump() if record.summary else {}
        json_line(event="summary", out=_folder(scorer, out), **other, **summary)


def _folder(scorer: str, out: Path | None) -> Path | None:
    return out if out is None or scorer == MAIN else out / scorer


def _print_results(records: Mapping[str, Record], out: Path | None, state: str) -> None:
    screen, main = console(), records[MAIN]
    screen.print(f"[bold]{plain(run_title(main))}", task_table(main), summary_line(main), sep="\n")
    if len(records) > 1:
        names = {str(_folder(scorer, out) or scorer): record for scorer, record in records.items()}
        screen.print("", "one training, scored in several ways:", run_table(names), sep="\n")
    if out:
        screen.print(f"{state}; kept in {out} (see: ssil show {out})", markup=False)
