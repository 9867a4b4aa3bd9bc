"""A run from start to end: a loop over the tasks, with the run directory written along the way."""

import resource
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from math import isnan, prod
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ssil.benchmark.config import RunConfig
from ssil.benchmark.exemplar_choice import choose_exemplars, refuse_no_room
from ssil.benchmark.record import Record, TaskRecord
from ssil.benchmark.run_directory import RunDirectory
from ssil.benchmark.run_setup import RunSetup, set_up
from ssil.benchmark.run_state import RunState
from ssil.core.errors import DivergedError, UserError
from ssil.learning import metrics
from ssil.learning.distributed import all_equal, ending_together, total
from ssil.learning.engine import learn, start
from ssil.learning.evaluation import predict, teacher_ratios
from ssil.learning.metrics import Predictions
from ssil.learning.model_state import ModelSize, model_size
from ssil.learning.snapshot import MAIN
from ssil.learning.task import Progress, ProgressReport, Task


class RunObserver:
    """Callbacks of a run. These do nothing; subclasses override those that they need."""

    def reading(self, done: int, files: int) -> None:
        """`done` of `files` image files are examined, before the run begins."""

    def features(self, done: int, images: int) -> None:
        """The frozen features of `done` of `images` images are computed, before the run begins."""

    def started(self, record: Record) -> None:
        """The run begins, or continues: `record` holds the finished tasks."""

    def progress(self, task: int, report: ProgressReport) -> None:
        """A step or an epoch of a task is finished."""

    def epoch(self, task: int, losses: Mapping[str, Mapping[str, Sequence[float]]]) -> None:
        """An epoch of a task is finished: the task's losses so far, by phase, term and epoch."""

    def learnt(self, record: Record) -> None:
        """A task is learnt and evaluated: it is the record's last."""

    def finished(self, records: Mapping[str, Record]) -> None:
        """The run is finished; its records, by scorer."""

    def should_stop(self) -> bool:
        """Whether to write a checkpoint and raise KeyboardInterrupt now."""
        return False


class RunObservers(RunObserver):
    """Several observers in place of one."""

    def __init__(self, *observers: RunObserver) -> None:
        self.observers = observers
        for name in ("reading", "features", "started", "progress", "epoch", "learnt", "finished"):
            setattr(self, name, partial(self._call_all, name))

    def _call_all(self, name: str, *arguments: Any) -> None:
        for observer in self.observers:
            getattr(observer, name)(*arguments)

    def should_stop(self) -> bool:
        """Whether any observer asks to stop."""
        return any(observer.should_stop() for observer in self.observers)


def run(config: RunConfig, observer: RunObserver | None = None) -> Record:
    """Carry out a run, or continue it; of a finished run, only read the record.

    >>> config = RunConfig(dataset="digits", method="ft", tasks=2, backbone="resnet14", epochs=1, train_per_class=8)
    >>> [task.classes_seen for task in run(config).tasks]
    [5, 10]

    Raises:
        UserError: A setting does not fit, or the run directory is that of another run.
        KeyboardInterrupt: The observer asked to stop.
    """
    observer = observer or RunObserver()
    setup = set_up(config, observer.reading, observer.features)
    fabric = setup.context.fabric
    directory = RunDirectory(config.out, config.checkpoint_every) if config.out else None
    writer = directory if fabric.is_global_zero else None
    with ending_together(fabric), writer.locked() if writer else nullcontext():
        state = directory.restore(setup) if directory else RunState(setup.records)
        if not all_equal(fabric, state.position):
            raise UserError("out: not all processes see the same data and directory; let them share a file system")
        if writer:
            writer.write_remarks(setup.remarks)
        observer.started(state.record)
        tasks = _TaskRunner(setup, state, writer, observer)
        tasks.hold_exemplars()
        for task in setup.stream.tasks[len(state.record.tasks) :]:
            with _telling_what_is_kept(config.out, len(state.record.tasks)):
                tasks.run(task)
            observer.learnt(state.record)
            if task is not setup.stream.tasks[-1] and any(total(fabric, [observer.should_stop()])):
                raise KeyboardInterrupt  # a task without training steps ends before it can be stopped inside
        observer.finished(state.records)
        return state.record


@contextmanager
def _telling_what_is_kept(out: Path | None, tasks: int) -> Iterator[None]:
    """Add to the message of a DivergedError which state of the run was from before it, and is kept."""
    try:
        yield
    except DivergedError as error:
        kept = f" and another --out; {out} keeps the state from before, with {tasks} finished tasks" if out else ""
        raise DivergedError(f"{error}{kept}") from error


def check_finite(predictions: Mapping[str, Predictions], task: Task) -> None:
    """Raise DivergedError if a scorer's scores are infinite or not a number, which finite weights may lead to."""
    groups = ["score_old"] * (task.classes.old > 0) + ["score_new"] * (task.classes.new > 0)
    for name, found in predictions.items():
        for values in (getattr(found, group) for group in (*groups, "confidence")):
            if not (finite := values.isfinite()).all():
                scorer = "" if name == MAIN else f" of {name}"
                first = values[~finite][0].item()
                raise DivergedError(f"scores{scorer}: became {first} in task {task.number}; try a smaller --lr")


def share_done(record: Record, report: ProgressReport | None = None) -> float:
    """Return the finished share of a stream: tasks weighted by classes and epochs, and a part of the current one."""
    training, tasks = record.config["training"], len(record.tasks)
    first, later = training["epochs"], training.get("later_epochs") or training["epochs"]
    work: list[int] = [size * (later if index else first) for index, size in enumerate(record.task_sizes)]
    current = sum(work[tasks : tasks + 1]) * report.done if report else 0.0
    return (sum(work[:tasks]) + current) / sum(work)


class TaskResult(NamedTuple):
    """The result of a task by one scorer."""

    predictions: Predictions
    progress: Progress
    size: ModelSize
    teacher_ratio: list[float] | None
    """The share of each old task in the predictions of the model before, for the new task's images (Fig. 2)."""


@dataclass(frozen=True)
class _TaskRunner:
    """Learns, evaluates and records the tasks of a run one by one; `state` moves along."""

    setup: RunSetup
    state: RunState
    directory: RunDirectory | None
    observer: RunObserver

    def run(self, task: Task) -> None:
        """Learn a task, or the rest of it, evaluate it on all classes seen, choose exemplars, and write it all."""
        setup, state = self.setup, self.state
        method, context = setup.configured.method, setup.context
        started = time.perf_counter()
        ratios = teacher_ratios(state.snapshot, task.indices, context) if state.snapshot else {}
        state.progress = progress = state.progress or start(method, state.snapshot, task, context)
        refuse_no_room(setup, progress.network)
        spent = sum(progress.seconds.values())
        on_step = partial(self._on_step, task)
        snapshot = learn(method, state.snapshot, state.memory, task, context, progress, on_step)
        progress.check_finite(task.number)
        predictions = predict(snapshot, setup.stream.seen(task), setup.stream.test, context)
        check_finite(predictions, task)
        results = {
            name: TaskResult(found, progress, model_size(snapshot, name), ratios.get(name))
            for name, found in predictions.items()
        }
        seconds = spent + time.perf_counter() - started
        results |= self._branch_result(task, results[MAIN])
        state.memory = choose_exemplars(setup, state.memory, task, snapshot)
        self.hold_exemplars()
        state.records = {
            name: self._with_task(record, task, results[name], seconds) for name, record in state.records.items()
        }
        state.snapshot, state.progress = snapshot, None
        if self.directory:
            self.directory.write_task(state, {name: result.predictions for name, result in results.items()})

    def _branch_result(self, task: Task, main: TaskResult) -> dict[str, TaskResult]:
        """Learn the task with the branch's method from the model before it; in task 1 the branch is the main method."""
        setup, state = self.setup, self.state
        if not setup.branch:
            return {}
        if not state.snapshot:
            return {setup.branch.folder: main}
        method, context = setup.branch.method, setup.context
        progress = start(method, state.snapshot, task, context)

        def on_step(_: Progress, report: ProgressReport) -> None:
            self.observer.progress(task.number, replace(report, phase=f"branch {report.phase}"))
            if any(total(context.fabric, [self.observer.should_stop()])):
                raise KeyboardInterrupt

        snapshot = learn(method, state.snapshot, state.memory, task, context, progress, on_step)
        predictions = predict(snapshot, setup.stream.seen(task), setup.stream.test, context)
        check_finite(predictions, task)
        size = model_size(snapshot, MAIN)
        return {setup.branch.folder: TaskResult(predictions[MAIN], progress, size, main.teacher_ratio)}

    def _on_step(self, task: Task, progress: Progress, report: ProgressReport) -> None:
        """Call the observer, log a finished epoch, and write a checkpoint or stop if any process asks for it."""
        self.observer.progress(task.number, report)
        if report.step == 0:
            self.observer.epoch(task.number, progress.losses)
        if self.directory and report.step == 0:
            losses = {part: values[-1] for part, values in progress.losses[report.phase].items()}
            self.directory.log(task=task.number, phase=report.phase, epoch=report.epoch, loss=losses)
        due = bool(self.directory and self.directory.checkpoint_due())
        stop, write = total(self.setup.context.fabric, [self.observer.should_stop(), due])
        if write or (stop and self.setup.config.out):
            self._write_progress(task, progress)
        if stop:
            raise KeyboardInterrupt

    def _write_progress(self, task: Task, progress: Progress) -> None:
        """Write a checkpoint inside a task; all processes wait for it."""
        progress.average_sums(self.setup.context)
        progress.check_finite(task.number)
        if self.directory:
            self.directory.write_progress(self.state)
        total(self.setup.context.fabric, [])

    def hold_exemplars(self) -> None:
        """Hold the exemplars in memory if the settings ask for it; other image files are read when needed."""
        if form := self.setup.config.hold_exemplars:
            self.setup.context.samples.images.hold(self.state.memory.indices, form)

    def _with_task(self, record: Record, task: Task, result: TaskResult, seconds: float) -> Record:
        """Return the record with this task; after the last one also with the summary and the time of its end."""
        predictions, progress, size, ratio = result
        memory = self.state.memory
        entry = TaskRecord(
            task=task.number,
            classes_seen=task.classes.seen,
            top1=metrics.top1(predictions),
            top5=metrics.top5(predictions),
            task_aware_top1=metrics.task_aware_top1(predictions),
            task_top1=[None if isnan(top1) else top1 for top1 in metrics.task_top1(predictions, task.classes)],
            confusion=metrics.confusion(predictions, task.classes),
            **metrics.mean_scores(predictions),
            score_gap=metrics.score_gap(predictions) if task.classes.old and task.classes.new else None,
            teacher_ratio=ratio,
            memory_counts=list(memory.counts),
            exemplar_bytes=len(memory) * prod(self.setup.context.samples.images.shape),
            stored_bytes=sum(values.nbytes for values in memory.stored.values()),
            parameters=size.parameters,
            model_bytes=size.size,
            loss=progress.losses,
            seconds=seconds,
            seconds_by_phase=progress.seconds,
            images_seen=progress.images,
            gradient_steps=progress.gradient_steps,
            images_per_second=progress.images / max(sum(progress.seconds.values()), 1e-9),
            peak_memory_mb=_peak_memory_mb(self.setup.context.fabric.device),
        )
        record = record.with_task(entry)
        if record.summary:
            finished = datetime.now(UTC).isoformat(timespec="seconds")
            record = record.model_copy(update={"provenance": record.provenance | {"finished": finished}})
        return record


def _peak_memory_mb(device: torch.device) -> float:
    """Return the largest amount of GPU memory, or on a CPU of this process's memory, held so far."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
