"""A run followed live in TensorBoard, MLflow or Weights & Biases: an observer that sends points to a backend."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import isfinite
from pathlib import Path
from types import TracebackType
from typing import Self

from ssil.benchmark.config import RunConfig
from ssil.benchmark.record import Record, TaskRecord, flat
from ssil.benchmark.runner import RunObserver
from ssil.benchmark.tracking.backends import BACKENDS, Hyperparameter, TrackingBackend
from ssil.core.errors import UserError
from ssil.core.files import write_json
from ssil.learning.metrics import latest_share, newest_share
from ssil.learning.task import ProgressReport

Losses = Mapping[str, Mapping[str, Sequence[float]]]
"""The losses of a task so far, by phase, term and epoch."""

Point = tuple[int, dict[str, float]]
"""A step, and the values measured at it by name."""

SCORES = ("score_old", "score_new", "score_gap", "softmax_old", "softmax_new")


def tracker(config: RunConfig, on_failure: Callable[[str], None]) -> "Tracker | None":
    """Return the tracker that a run asks for, or None. Nothing is written yet.

    Args:
        config: The run's settings.
        on_failure: Called with one line when tracking fails during the run.

    Raises:
        UserError: There is no run directory, or the tool can't be imported or set up.
    """
    if config.track is None:
        return None
    if config.out is None:
        raise UserError(f"track: {config.track} needs a place; give --out, where it is kept in tracking/")
    folder = config.out / "tracking"
    try:
        backend = BACKENDS[config.track](folder)
    except ImportError as error:
        cure = f"pip install 'ssil[{config.track}]'"
        raise UserError(f"track: {config.track} can't be imported ({error}); install it with {cure}") from None
    except Exception as error:  # of any kind that the backend's package has
        raise UserError(f"track: {_first_line(error)}; mend it, or leave --track out") from error
    return Tracker(backend, folder / f"{config.track}.json", on_failure)


class Tracker(RunObserver):
    """Sends each point of a run to a backend once, however often the run is stopped and continued.

    Its file holds the backend's name of the run, and the last step that was sent. A failure after the start ends the
    tracking, never the run: missing points are sent when the same command is given again.
    """

    def __init__(self, backend: TrackingBackend, file: Path, on_failure: Callable[[str], None]) -> None:
        self.backend, self.file, self.on_failure = backend, file, on_failure
        self.open = False
        self._clock: tuple[float, int] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._try(partial(self.backend.end, finished=kind is None))

    def started(self, record: Record) -> None:
        """Begin or continue the backend's run, and send the points that it lacks."""
        self.points = history(record)
        try:
            self.run, self.step = self._last_sent()
            if not record.summary or self.step < len(self.points):
                name = f"{record.label} on {record.config['dataset']}, seed {record.config['seed']}"
                self.run, self.open = self.backend.begin(self.run, self.step, name, hyperparameters(record)), True
        except Exception as error:  # of any kind that the backend's package has
            cure = f"remove {self.file} to track from the start, or leave --track out"
            raise UserError(f"track: {_first_line(error)}; {cure}") from error
        self._send(self.points)

    def progress(self, task: int, report: ProgressReport) -> None:
        """Note the time of the first step after a pause."""
        self._images = report.images
        self._clock = self._clock or (time.monotonic(), report.images)

    def epoch(self, task: int, losses: Losses) -> None:
        """Send the losses and the speed of a finished epoch."""
        points = epoch_points(losses, len(self.points))
        if points and (speed := self._speed()) > 0:
            points[-1][1]["images_per_second/epoch"] = speed
        self._send(points)

    def learnt(self, record: Record) -> None:
        """Send the results of a finished task, and losses that have not been sent."""
        self.points, self._clock = history(record), None
        self._send(self.points)

    def _speed(self) -> float:
        """Return the images per second since the last epoch, or since the first step that was observed."""
        assert self._clock is not None
        (since, images), self._clock = self._clock, (time.monotonic(), self._images)
        return (self._images - images) / max(self._clock[0] - since, 1e-9)

    def _last_sent(self) -> tuple[str | None, int]:
        if not self.file.exists():
            return None, 0
        kept = json.loads(self.file.read_text())
        return kept["run"], kept["step"]

    def _send(self, points: Sequence[Point]) -> None:
        """Send the points after the last one that was sent."""
        for step, values in points:
            if step > self.step and self._try(partial(self.backend.log, step, values)):
                self.step = step
        if self.open:
            write_json(self.file, {"run": self.run, "step": self.step})

    def _try(self, action: Callable[[], None]) -> bool:
        """Return whether the action succeeded; after a failure report it and try nothing more."""
        if self.open:
            try:
                action()
            except Exception as error:  # of any kind that the backend's package has
                self.open = False
                reason = _first_line(error)
                self.on_failure(f"tracking stopped: {reason}; the same command, when the run is done, sends the rest")
        return self.open


def history(record: Record) -> list[Point]:
    """Return the points of the finished tasks, one for each step from 1 on."""
    points: list[Point] = []
    for task in record.tasks:
        points += epoch_points(task.loss, len(points))
        points.append((len(points) + 1, _results(task)))
    if record.summary:
        known = record.summary.model_dump(exclude_none=True)
        points[-1][1].update({f"summary/{name}": value for name, value in known.items()})
    return points


def epoch_points(losses: Losses, before: int) -> list[Point]:
    """Return the points of a task's epochs, where `before` steps come first.

    >>> epoch_points({"main": {"ce": [2.0, 1.0]}, "balanced": {"ce": [0.5]}}, before=7)
    [(8, {'loss/main/ce': 2.0}), (9, {'loss/main/ce': 1.0}), (10, {'loss/balanced/ce': 0.5})]
    """
    found = [
        {f"loss/{phase}/{part}": values[epoch] for part, values in parts.items() if epoch < len(values)}
        for phase, parts in losses.items()
        for epoch in range(max(map(len, parts.values()), default=0))
    ]
    return list(enumerate(found, before + 1))


def _results(task: TaskRecord) -> dict[str, float]:
    """Return the finite results of a task, by name."""
    later = task.task > 1
    values = {
        "accuracy/top1": task.top1,
        "accuracy/top5": task.top5,
        **{f"task_top1/{number:02d}": value for number, value in enumerate(task.task_top1, 1)},
        "bias/newest_share": newest_share(task.confusion) if later else None,
        "bias/latest_share": latest_share(task.teacher_ratio) if task.teacher_ratio else None,
        **{f"bias/{name}": getattr(task, name) for name in SCORES},
        "memory/exemplars": sum(task.memory_counts),
        "memory/exemplar_bytes": task.exemplar_bytes,
        "memory/model_bytes": task.model_bytes,
        "memory/peak_memory_mb": task.peak_memory_mb,
        "images_per_second/task": task.images_per_second,
        "stream/task": task.task,
        "stream/classes_seen": task.classes_seen,
        "stream/seconds": task.seconds,
    }
    return {name: float(value) for name, value in values.items() if value is not None and isfinite(value)}


def hyperparameters(record: Record) -> dict[str, Hyperparameter]:
    """Return the settings of a run, by name; values of other types become strings."""
    settings = flat(record.config | {"task_sizes": record.task_sizes})
    return {name: value if isinstance(value, Hyperparameter) else str(value) for name, value in settings.items()}


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
