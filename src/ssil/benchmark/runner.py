"""A run, start to end: the fold over the tasks, with its mirror on disk."""

import resource
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

import torch

from ssil.benchmark.config import RunConfig
from ssil.benchmark.record import Record, TaskRecord
from ssil.benchmark.run_directory import RunDirectory, State
from ssil.benchmark.run_setup import Plan, prepare
from ssil.core.errors import UserError
from ssil.learning import memory as memories
from ssil.learning import metrics
from ssil.learning.engine import learn, start
from ssil.learning.evaluation import features, predict, teacher_ratios
from ssil.learning.memory import Memory, Select
from ssil.learning.metrics import Predictions
from ssil.learning.processes import agree, same, together, total
from ssil.learning.snapshot import MAIN, Snapshot
from ssil.learning.task import Pace, Progress, Task


class RunObserver:
    """Told of everything that happens in a run; by default it does nothing."""

    def reading(self, done: int, files: int) -> None:
        """So many image files are examined, before the run begins."""

    def started(self, record: Record) -> None:
        """The run begins, or goes on: `record` holds the tasks that are done."""

    def pace(self, task: int, pace: Pace) -> None:
        """A step or an epoch of a task is done."""

    def epoch(self, task: int, losses: Mapping[str, Mapping[str, Sequence[float]]]) -> None:
        """An epoch of a task is done: the task's losses so far, by phase, part and epoch."""

    def learnt(self, record: Record) -> None:
        """A task is learnt and evaluated: it is the record's last."""

    def finished(self, records: Mapping[str, Record]) -> None:
        """The run is done; its records, by scorer."""

    def should_stop(self) -> bool:
        """Whether to write a checkpoint and stop now."""
        return False


def run(config: RunConfig, observer: RunObserver | None = None) -> Record:
    """Carry a run out, or go on with it; a finished run is only read.

    >>> config = RunConfig(dataset="digits", method="ft", tasks=2, backbone="resnet14", epochs=1, train_per_class=8)
    >>> [task.classes_seen for task in run(config).tasks]
    [5, 10]
    """
    observer = observer or RunObserver()
    plan = prepare(config, observer.reading)
    fabric = plan.context.fabric
    directory = RunDirectory(config.out, config.checkpoint_every) if config.out else None
    writer = directory if fabric.is_global_zero else None
    with together(fabric), writer.locked() if writer else nullcontext():
        state = directory.restore(plan) if directory else State(plan.headers)
        if not same(fabric, state.position):
            raise UserError("out: not all processes see the same data and directory; let them share a file system")
        if writer:
            writer.keep_remarks(plan.remarks)
        return _Fold(plan, state, writer, observer).finish()


def share_done(record: Record, pace: Pace | None = None) -> float:
    """How much of a stream is done: its tasks by their classes and epochs, and a part of the current one."""
    training, tasks = record.config["training"], len(record.tasks)
    first, later = training["epochs"], training.get("later_epochs") or training["epochs"]
    work: list[int] = [size * (later if index else first) for index, size in enumerate(record.task_sizes)]
    current = sum(work[tasks : tasks + 1]) * pace.done if pace else 0.0
    return (sum(work[:tasks]) + current) / sum(work)


class TaskResult(NamedTuple):
    """What a task has led to, by one scorer: predictions, the training's course, the old model's view of the task."""

    predictions: Predictions
    progress: Progress
    ratio: list[float] | None


class _Fold:
    def __init__(self, plan: Plan, state: State, directory: RunDirectory | None, observer: RunObserver) -> None:
        self.plan, self.state, self.directory, self.observer = plan, state, directory, observer

    def finish(self) -> Record:
        """Learn all tasks that are left."""
        self.observer.started(self.state.record)
        self._hold()
        for task in self.plan.stream.tasks[len(self.state.record.tasks) :]:
            self._learn(task)
            self.observer.learnt(self.state.record)
        self.observer.finished(self.state.records)
        return self.state.record

    def _learn(self, task: Task) -> None:
        plan, state = self.plan, self.state
        method, context = plan.configured.method, plan.context
        started = time.perf_counter()
        ratios = teacher_ratios(state.snapshot, task.indices, context) if state.snapshot else {}
        state.progress = state.progress or start(method, state.snapshot, task, context)
        spent = sum(state.progress.seconds.values())

        def watch(progress: Progress, pace: Pace) -> None:
            self._watch(task, progress, pace)

        snapshot = learn(method, state.snapshot, state.memory, task, context, state.progress, watch)
        predictions = predict(snapshot, plan.stream.seen(task), plan.stream.test, context)
        made = {
            name: TaskResult(predicted, state.progress, ratios.get(name)) for name, predicted in predictions.items()
        }
        seconds = spent + time.perf_counter() - started
        made |= self._branched(task, made[MAIN])
        state.memory = self._exemplars(task, snapshot)
        self._hold()
        state.records = {
            name: self._recorded(record, task, made[name], seconds) for name, record in state.records.items()
        }
        state.snapshot, state.progress = snapshot, None
        if self.directory:
            self.directory.keep_task(state, {name: one.predictions for name, one in made.items()})

    def _branched(self, task: Task, chain: TaskResult) -> dict[str, TaskResult]:
        """What the branch makes of the task, from the model that the chain began it with; in task 1 there is none."""
        plan, state = self.plan, self.state
        if not plan.branch:
            return {}
        if not state.snapshot:
            return {plan.branch.folder: chain}
        method, context = plan.branch.method, plan.context
        progress = start(method, state.snapshot, task, context)

        def watch(_: Progress, pace: Pace) -> None:
            self.observer.pace(task.number, replace(pace, phase=f"branch {pace.phase}"))
            if any(total(context.fabric, [self.observer.should_stop()])):
                raise KeyboardInterrupt

        snapshot = learn(method, state.snapshot, state.memory, task, context, progress, watch)
        predicted = predict(snapshot, plan.stream.seen(task), plan.stream.test, context)[MAIN]
        return {plan.branch.folder: TaskResult(predicted, progress, chain.ratio)}

    def _watch(self, task: Task, progress: Progress, pace: Pace) -> None:
        self.observer.pace(task.number, pace)
        if pace.step == 0:
            self.observer.epoch(task.number, progress.losses)
        if self.directory and pace.step == 0:
            losses = {part: values[-1] for part, values in progress.losses[pace.phase].items()}
            self.directory.log(task=task.number, phase=pace.phase, epoch=pace.epoch, loss=losses)
        fabric, due = self.plan.context.fabric, bool(self.directory and self.directory.due())
        stop, keep = total(fabric, [self.observer.should_stop(), due])  # what one asks for, all do
        if keep or (stop and self.plan.config.out):
            self._keep(task, progress)
        if stop:
            raise KeyboardInterrupt

    def _keep(self, task: Task, progress: Progress) -> None:
        """A checkpoint inside a task, which all processes wait for."""
        progress.agree(self.plan.context)
        progress.check_finite(task.number)
        if self.directory:
            self.directory.keep_progress(self.state)
        total(self.plan.context.fabric, [])

    def _hold(self) -> None:
        """Keep the exemplars of a set that is not in memory in it, if so wished."""
        if form := self.plan.config.hold_exemplars:
            self.plan.context.samples.images.hold(self.state.memory.indices, form)

    def _exemplars(self, task: Task, snapshot: Snapshot) -> Memory:
        plan, context = self.plan, self.plan.context
        select: Select = memories.random_selection(context.random)
        if plan.config.selection == "herding":
            select = memories.herding(lambda indices: features(snapshot, indices, context))
        arrived = memories.by_class(task.indices, context.samples.labels)
        chosen = memories.update(self.state.memory, arrived, task.classes, plan.budget, select)
        agree(context.fabric, chosen.exemplars)
        return chosen

    def _recorded(self, record: Record, task: Task, made: TaskResult, seconds: float) -> Record:
        """The record with this task; with the summary and the end's time if it is the last."""
        predictions, progress, ratio = made
        height, width, channels = self.plan.context.samples.images.shape
        entry = TaskRecord(
            task=task.number,
            classes_seen=task.classes.seen,
            top1=metrics.top1(predictions),
            top5=metrics.top5(predictions),
            task_top1=metrics.task_top1(predictions, task.classes),
            confusion=metrics.confusion(predictions, task.classes),
            **metrics.mean_scores(predictions),
            score_gap=metrics.score_gap(predictions) if task.classes.old else None,
            teacher_ratio=ratio,
            memory_counts=list(self.state.memory.counts),
            exemplar_bytes=len(self.state.memory) * height * width * channels,
            loss=progress.losses,
            seconds=seconds,
            seconds_by_phase=progress.seconds,
            images_per_second=progress.images / max(sum(progress.seconds.values()), 1e-9),
            peak_memory_mb=_peak_memory_mb(self.plan.context.fabric.device),
        )
        record = record.with_task(entry)
        if record.summary:
            finished = datetime.now(UTC).isoformat(timespec="seconds")
            record = record.model_copy(update={"provenance": record.provenance | {"finished": finished}})
        return record


def _peak_memory_mb(device: torch.device) -> float:
    """The most that was ever held: of the GPU's memory, or by this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
