"""Follow a run live in TensorBoard, MLflow or Weights & Biases: a watcher that sends on what it is told."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from ssil.benchmark.config import RunConfig
from ssil.benchmark.record import Record
from ssil.benchmark.runner import RunObserver
from ssil.benchmark.tracking.backends import BACKENDS, Losses, Point, TrackingBackend, epochs, history, settings
from ssil.core.errors import UserError
from ssil.core.files import write_json
from ssil.learning.task import Pace


def tracker(config: RunConfig, tell: Callable[[str], None]) -> "Tracker | None":
    """The tracker that a run asks for; `tell` gets a line when tracking fails. Nothing is written yet."""
    if config.track is None:
        return None
    if config.out is None:
        raise UserError(f"track: {config.track} needs a place; give --out, where it is kept in tracking/")
    folder = config.out / "tracking"
    try:
        store = BACKENDS[config.track](folder)
    except ImportError as error:
        cure = f"pip install 'ssil[{config.track}]'"
        raise UserError(f"track: {config.track} can't be imported ({error}); install it with {cure}") from None
    except Exception as error:  # of any kind that the store's package has
        raise UserError(f"track: {_line(error)}; mend it, or leave --track out") from error
    return Tracker(store, folder / f"{config.track}.json", tell)


class Tracker(RunObserver):
    """Sends each point of a run to a store once, however often the run is stopped and gone on with.

    Its file says which run of the store this is, and which step was sent last. What fails after the start ends the
    tracking, never the run: points that are missing are sent when the same command is given again.
    """

    def __init__(self, store: TrackingBackend, file: Path, tell: Callable[[str], None]) -> None:
        self.store, self.file, self.tell = store, file, tell
        self.open = False
        self._clock: tuple[float, int] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._try(partial(self.store.end, finished=kind is None))

    def started(self, record: Record) -> None:
        """Begin or go on, and make up for what is missing."""
        self.points = history(record)
        try:
            self.run, self.step = self._kept()
            if not record.summary or self.step < len(self.points):
                self.run, self.open = self.store.begin(self.run, self.step, _name(record), settings(record)), True
        except Exception as error:  # of any kind that the store's package has
            cure = f"remove {self.file} to track from the start, or leave --track out"
            raise UserError(f"track: {_line(error)}; {cure}") from error
        self._send(self.points)

    def pace(self, task: int, pace: Pace) -> None:
        """Keep the time of the first step that is seen."""
        self._images = pace.images
        self._clock = self._clock or (time.monotonic(), pace.images)

    def epoch(self, task: int, losses: Losses) -> None:
        """An epoch is done: its losses and its speed."""
        points = epochs(losses, len(self.points))
        if points and (speed := self._speed()) > 0:
            points[-1][1]["images_per_second/epoch"] = speed
        self._send(points)

    def learnt(self, record: Record) -> None:
        """A task is done: its results, and losses that have not been sent."""
        self.points, self._clock = history(record), None
        self._send(self.points)

    def _speed(self) -> float:
        """Images a second since the last epoch, or since the first step that was seen."""
        assert self._clock is not None
        (since, images), self._clock = self._clock, (time.monotonic(), self._images)
        return (self._images - images) / max(self._clock[0] - since, 1e-9)

    def _kept(self) -> tuple[str | None, int]:
        if not self.file.exists():
            return None, 0
        kept = json.loads(self.file.read_text())
        return kept["run"], kept["step"]

    def _send(self, points: Sequence[Point]) -> None:
        """Send the points that come after the last one."""
        for step, values in points:
            if step > self.step and self._try(partial(self.store.log, step, values)):
                self.step = step
        if self.open:
            write_json(self.file, {"run": self.run, "step": self.step})

    def _try(self, action: Callable[[], None]) -> bool:
        """Whether it went well; if not, it is said once and nothing more is tried."""
        if self.open:
            try:
                action()
            except Exception as error:  # of any kind that the store's package has
                self.open = False
                self.tell(f"tracking stopped: {_line(error)}; the same command, when the run is done, sends the rest")
        return self.open


class RunObservers(RunObserver):
    """Several watchers in place of one."""

    def __init__(self, *watchers: RunObserver) -> None:
        self.watchers = watchers

    def reading(self, done: int, files: int) -> None:
        """Tell all."""
        for observer in self.watchers:
            observer.reading(done, files)

    def started(self, record: Record) -> None:
        """Tell all."""
        for observer in self.watchers:
            observer.started(record)

    def pace(self, task: int, pace: Pace) -> None:
        """Tell all."""
        for observer in self.watchers:
            observer.pace(task, pace)

    def epoch(self, task: int, losses: Losses) -> None:
        """Tell all."""
        for observer in self.watchers:
            observer.epoch(task, losses)

    def learnt(self, record: Record) -> None:
        """Tell all."""
        for observer in self.watchers:
            observer.learnt(record)

    def finished(self, records: Mapping[str, Record]) -> None:
        """Tell all."""
        for observer in self.watchers:
            observer.finished(records)

    def should_stop(self) -> bool:
        """Whether any wants to."""
        return any(observer.should_stop() for observer in self.watchers)


def _name(record: Record) -> str:
    return f"{record.label} on {record.config['dataset']}, seed {record.config['seed']}"


def _line(error: Exception) -> str:
    """The first line of what went wrong."""
    return (str(error).splitlines() or [type(error).__name__])[0]
