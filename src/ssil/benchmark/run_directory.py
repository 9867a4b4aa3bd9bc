"""A run's directory: its lock, its record, its checkpoints, its log."""

import csv
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.amp import GradScaler

from ssil.benchmark.checkpoint import Checkpoints
from ssil.benchmark.config import checkpoint_interval
from ssil.benchmark.record import Record, flat, read_record, write_predictions, write_record
from ssil.benchmark.run_setup import Plan
from ssil.core.classes import ClassTable
from ssil.core.errors import UserError
from ssil.core.files import LOCK, locked
from ssil.data.image_index import Remark
from ssil.learning.execution import ExecutionContext
from ssil.learning.memory import Memory
from ssil.learning.method import Method
from ssil.learning.metrics import Predictions
from ssil.learning.model_state import grouped, joined, model_tensors, restore_model, restore_snapshot, snapshot_tensors
from ssil.learning.registry import ConfiguredMethod
from ssil.learning.snapshot import MAIN, Snapshot
from ssil.learning.task import Progress


@dataclass
class State:
    """All that a run carries from one moment to the next."""

    records: Mapping[str, Record]
    """By scorer."""
    snapshot: Snapshot | None = None
    memory: Memory = field(default_factory=Memory)
    progress: Progress | None = None

    @property
    def record(self) -> Record:
        """That of the scorer which the method is judged by."""
        return self.records[MAIN]

    @property
    def position(self) -> tuple[object, ...]:
        """What the state is of, and how far it is."""
        progress = self.progress and (self.progress.phase, self.progress.epoch, self.progress.step)
        return self.record.config, len(self.record.tasks), progress


class RunDirectory:
    """Where a run is kept. The checkpoint decides what is done; the record is brought in line with it."""

    def __init__(self, folder: Path, checkpoint_every: str) -> None:
        self.folder = folder
        self.checkpoints = Checkpoints(folder / "checkpoint")
        self.interval = checkpoint_interval(checkpoint_every)
        self._begin_interval()

    def locked(self) -> AbstractContextManager[None]:
        """Hold the directory: a second process is refused."""
        return locked(self.folder, "run", self._ours())

    def _ours(self) -> bool:
        """Whether there is nothing here but what a run leaves."""
        if not self.folder.is_dir():
            return False
        names = {path.name for path in self.folder.iterdir()}
        return not names or not names.isdisjoint({LOCK, "record.json"})

    def restore(self, plan: Plan) -> State:
        """The state to go on from: the last checkpoint's, or a new run's."""
        if not (self.folder / "record.json").exists():
            return State(plan.headers)
        there, here = (identity(found, plan.configured) for found in (read_record(self.folder), plan.header))
        _refuse_another(self.folder, there, here)
        if there["dataset"] != here["dataset"] and plan.context.fabric.is_global_zero:
            self._say_where(here["dataset"], plan.headers)
        record = read_record(self.folder)
        if not self.checkpoints.exists:  # a finished run whose model was not kept is still finished
            return State(self._records(plan) if record.summary else plan.headers)
        meta, parts = self.checkpoints.load()
        done = meta["tasks_done"]
        records = self._records(plan) if done else {**plan.headers, MAIN: record}
        changes = {"provenance": _resumed(record.after(done), plan)}
        state = State({name: kept.after(done).model_copy(update=changes) for name, kept in records.items()})
        method, tasks = plan.configured.method, plan.stream.tasks
        if done:
            state.snapshot = restore_snapshot(parts["snapshot"], method, tasks[done - 1].classes, plan.context)
            state.memory = Memory(parts["memory"]["indices"].split(meta["memory_counts"]))
        if meta["progress"]:
            state.progress = _progress(parts["progress"], meta["progress"], method, tasks[done].classes, plan.context)
        return state

    def _records(self, plan: Plan) -> dict[str, Record]:
        return {name: read_record(self._of(name)) for name in plan.headers}

    def _say_where(self, dataset: str, scorers: Iterable[str]) -> None:
        """The data have moved: let the records that there are name their new place."""
        for folder in map(self._of, scorers):
            if (folder / "record.json").exists():
                record = read_record(folder)
                write_record(folder, record.model_copy(update={"config": record.config | {"dataset": dataset}}))

    def _of(self, scorer: str) -> Path:
        """Where a scorer's record and predictions are: the method's own here, those of others in a folder each."""
        return self.folder if scorer == MAIN else self.folder / scorer

    def keep_remarks(self, remarks: Sequence[Remark]) -> None:
        """What was left out of the data, and what is odd about it, in `remarks.csv`."""
        path = self.folder / "remarks.csv"
        if path.exists():  # from when the data were others
            path.unlink()
        if remarks:
            with path.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([Remark._fields, *remarks])

    def keep_task(self, state: State, predictions: Mapping[str, Predictions]) -> None:
        """A task is done: its predictions, the record, and the checkpoint that makes it count."""
        assert state.snapshot is not None
        if not self.checkpoints.exists:  # so that a summary without a checkpoint means that the model was removed
            self.checkpoints.save(_meta(State({MAIN: state.record.after(0)})), {})
        for name, record in reversed([*state.records.items()]):  # the method's own last: a summary there speaks for all
            write_predictions(self._of(name), len(record.tasks), predictions[name])
            write_record(self._of(name), record)
        parts = {"snapshot": snapshot_tensors(state.snapshot), "memory": {"indices": state.memory.indices}}
        self.checkpoints.save(_meta(state), parts)
        self._begin_interval()

    def keep_progress(self, state: State) -> None:
        """Inside a task: what the task has reached; what it started from is on disk already."""
        assert state.progress is not None
        kept = dict.fromkeys(("snapshot", "memory")) if state.snapshot else {}
        if not state.snapshot:
            write_record(self.folder, state.record)
        self.checkpoints.save(_meta(state), {**kept, "progress": _progress_tensors(state.progress)})
        self._begin_interval()

    def due(self) -> bool:
        """Whether it is time for another checkpoint; to be asked once a step."""
        steps, seconds = self.interval
        self.steps_since += 1
        if steps:
            return self.steps_since >= steps
        return time.monotonic() - self.since >= (seconds or 0.0)

    def log(self, **event: Any) -> None:
        """A line of `log.jsonl`."""
        line = json.dumps({"time": datetime.now(UTC).isoformat(timespec="seconds"), **event})
        with (self.folder / "log.jsonl").open("a") as file:
            file.write(line + "\n")

    def _begin_interval(self) -> None:
        self.steps_since, self.since = 0, time.monotonic()


def identity(record: Record, configured: ConfiguredMethod) -> dict[str, Any]:
    """What must be equal for a directory to be gone on with; an option that is not there has its default."""
    riders = {
        name: rider | {"options": {**configured.riders[name].defaults, **rider["options"]}}
        if name in configured.riders
        else rider
        for name, rider in record.config.get("riders", {}).items()
    }
    options = {**configured.defaults, **record.config["options"]}
    stream = {"class_order": record.class_order, "task_sizes": record.task_sizes}
    return record.config | {"options": options, "riders": riders} | stream


_PLACE = ("ssil", "commit", "torch", "device", "devices", "accumulate", "compile", "threads")


def _resumed(record: Record, plan: Plan) -> dict[str, Any]:
    """The provenance, with what differs from it now; threads that nobody asked for stay as they were."""
    then, now = record.provenance, plan.header.provenance
    if plan.config.threads is None:
        torch.set_num_threads(then["threads"])
        now = now | {"threads": then["threads"]}
    changed = {key: now.get(key) for key in _PLACE if now.get(key) != then.get(key)}
    if not changed or record.summary:
        return then
    return then | {"resumed": [*then.get("resumed", []), {"task": len(record.tasks) + 1, **changed}]}


def _refuse_another(folder: Path, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    before, now = flat(there), flat(here)
    changed = [name for name in sorted(before | now) if before.get(name) != now.get(name)]
    if "data_fingerprint" not in changed:  # the same images, which may have moved
        changed = [name for name in changed if name != "dataset"]
    both = [name for name in changed if name in before and name in now]
    if files := [name.removesuffix("_sha256") for name in both if name.endswith("_sha256")]:
        raise UserError(f"out: {folder} was begun with another content of the {files[0]}'s file; give another --out")
    if changed == ["data_fingerprint"]:
        raise UserError(
            f"out: {folder} was begun with other images (some were added, removed or changed since); give another --out"
        )
    if changed:
        shown = "; ".join(f"{name}: {_short(before.get(name))} there, {_short(now.get(name))} here" for name in changed)
        raise UserError(f"out: {folder} holds a run with other settings ({shown}); give another --out")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:36]}..."


def _meta(state: State) -> dict[str, Any]:
    return {
        "tasks_done": len(state.record.tasks),
        "memory_counts": list(state.memory.counts),
        "progress": state.progress and _position(state.progress),
    }


_POSITION = ("phase", "epoch", "step", "images", "losses", "seconds")


def _position(progress: Progress) -> dict[str, Any]:
    scaler = {"scaler": progress.scaler.state_dict()} if progress.scaler else {}
    return {name: getattr(progress, name) for name in _POSITION} | scaler


def _progress_tensors(progress: Progress) -> dict[str, Tensor]:
    model = model_tensors(progress.network, progress.scorers)
    groups = {"momentum": progress.momentum, "sums": progress.sums, "model": model}
    groups |= {f"kept.{name}": snapshot_tensors(snapshot) for name, snapshot in progress.kept.items()}
    return joined(groups)


def _progress(
    tensors: Mapping[str, Tensor],
    position: Mapping[str, Any],
    method: Method,
    classes: ClassTable,
    context: ExecutionContext,
) -> Progress:
    groups = grouped(tensors)
    before = {f"network/{name}": value for name, value in groups.get("network", {}).items()}  # as 0.1.0 began
    network, scorers = restore_model(groups.get("model", before), method, classes, context)
    sums = {name: value.to(context.fabric.device) for name, value in groups.get("sums", {}).items()}
    kept = {
        name.removeprefix("kept."): restore_snapshot(group, method, classes, context)
        for name, group in groups.items()
        if name.startswith("kept.")
    }
    scaler = _scaler(position["scaler"], context) if "scaler" in position else None
    where = {name: position[name] for name in _POSITION}
    return Progress(network, scorers, kept, **where, sums=sums, momentum=groups.get("momentum", {}), scaler=scaler)


def _scaler(state: dict[str, Any], context: ExecutionContext) -> GradScaler:
    scaler = GradScaler(context.fabric.device.type)
    scaler.load_state_dict(state)
    return scaler
