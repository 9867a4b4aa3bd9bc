"""What a run tells while it goes: JSON lines for programs, plain lines for files. `bars.py` is for terminals."""

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from ssil.benchmark.record import Record
from ssil.benchmark.runner import RunObserver
from ssil.cli.interrupts import Interrupts
from ssil.cli.terminal import json_line
from ssil.cli.terminal_tables import line, title
from ssil.learning.task import Pace

EVERY = 5.0
"""Seconds between two plain lines about a task that is still being learnt."""


def phase(pace: Pace) -> str:
    """The phase's name before its epoch, where a task has several parts."""
    return f"{pace.phase}, " if pace.parts > 1 else ""


class Reporter(RunObserver):
    """Follows runs and says nothing. `with` it, Ctrl-C waits for the next step."""

    def __init__(self) -> None:
        self.interrupts = Interrupts()

    def __enter__(self) -> Self:
        self.interrupts.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.interrupts.__exit__(kind, error, at)

    def started(self, record: Record) -> None:
        """A run begins or goes on."""
        self.record, self.task, self.was_finished = record, 0, record.summary is not None
        self.interrupts.training = True

    def pace(self, task: int, pace: Pace) -> None:
        """A step or an epoch is done."""
        if task != self.task:
            resumed = not self.task and (self.record.tasks or (pace.epoch, pace.step) != (0, 1))
            self.task, self._since, self._images = task, time.monotonic(), pace.images
            self.begun(pace)
            if resumed:
                epoch = min(pace.epoch + 1, pace.epochs)
                self.resumed(f"going on in task {task}, {phase(pace)}epoch {epoch}/{pace.epochs}")

    def begun(self, pace: Pace) -> None:
        """The first step of a task in this process is done."""

    def resumed(self, where: str) -> None:
        """The first step of this process is not the stream's first."""

    def learnt(self, record: Record) -> None:
        """A task is done."""
        self.record = record

    def finished(self, records: Mapping[str, Record]) -> None:
        """The run is done."""
        self.records = records

    def should_stop(self) -> bool:
        """Whether there was an interrupt."""
        return self.interrupts.requested

    def speed(self, pace: Pace) -> float:
        """Images a second since the task began, or went on."""
        return (pace.images - self._images) / max(time.monotonic() - self._since, 1e-9)


class JsonLines(Reporter):
    """An object a task, those done before included."""

    def started(self, record: Record) -> None:
        """The tasks that are done."""
        super().started(record)
        for task in record.tasks:
            json_line(event="task", **task.model_dump(mode="json"))

    def learnt(self, record: Record) -> None:
        """The task that has just been done."""
        json_line(event="task", **record.tasks[-1].model_dump(mode="json"))


class Lines(Reporter):
    """A line a task, and now and then one about the task's progress."""

    def __init__(self) -> None:
        super().__init__()
        self._said = time.monotonic()

    def reading(self, done: int, files: int) -> None:
        """The image files that are examined, if it is time to say so."""
        if time.monotonic() - self._said >= EVERY:
            self._said = time.monotonic()
            print(f"examined {done:,} of {files:,} image files", flush=True)

    def started(self, record: Record) -> None:
        """What is run."""
        super().started(record)
        self._said = time.monotonic()
        print(title(record), flush=True)

    def resumed(self, where: str) -> None:
        """Where the run goes on."""
        print(where, flush=True)

    def pace(self, task: int, pace: Pace) -> None:
        """The epochs that are done, if it is time to say so."""
        super().pace(task, pace)
        if pace.step == 0 and time.monotonic() - self._said >= EVERY:
            self._said = time.monotonic()
            where = f"task {task}/{len(self.record.task_sizes)}, {phase(pace)}epoch {pace.epoch}/{pace.epochs}"
            print(f"{where}: {self.speed(pace):.0f} images/s", flush=True)

    def learnt(self, record: Record) -> None:
        """The task's results."""
        super().learnt(record)
        print(line(record), flush=True)
