"""A run directory: its lock, records, predictions, checkpoints and log."""

import csv
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.amp import GradScaler

from ssil.benchmark.checkpoint import Checkpoints
from ssil.benchmark.checksums import ARRAYS, CHECKSUMS
from ssil.benchmark.config import checkpoint_interval
from ssil.benchmark.record import Record, read_record, verify_predictions, write_predictions, write_record
from ssil.benchmark.run_identity import identity, refuse_other_run, resumed_provenance
from ssil.benchmark.run_setup import RunSetup
from ssil.core.classes import ClassTable
from ssil.core.errors import UserError
from ssil.core.files import LOCK, append_line, locked, read_file, refuse_special, write_atomic
from ssil.data.image_index import Remark
from ssil.learning.execution import ExecutionContext
from ssil.learning.memory import Memory
from ssil.learning.method import Method
from ssil.learning.metrics import Predictions
from ssil.learning.model_state import (
    join_groups,
    model_tensors,
    restore_model,
    restore_snapshot,
    snapshot_tensors,
    split_groups,
)
from ssil.learning.snapshot import MAIN, Snapshot
from ssil.learning.task import Progress

BEGUN = {
    LOCK,
    CHECKSUMS,
    "log.jsonl",
    "remarks.csv",
    f".{CHECKSUMS}.part",
    ".record.json.part",
    ".remarks.csv.part",
    ARRAYS,
    "checkpoint",
    "tracking",
}
"""What a run may have written before its first checkpoint."""


@dataclass
class RunState:
    """All that a run carries from one step to the next."""

    records: Mapping[str, Record]
    """By scorer."""
    snapshot: Snapshot | None = None
    """The model after the last finished task."""
    memory: Memory = field(default_factory=Memory)
    progress: Progress | None = None
    """The unfinished task, if one was begun."""

    @property
    def record(self) -> Record:
        """The record of the method's main scorer."""
        return self.records[MAIN]

    @property
    def position(self) -> tuple[object, ...]:
        """The settings, the finished tasks, and the position in the unfinished one: equal in all processes of a run."""
        progress = self.progress and (self.progress.phase, self.progress.epoch, self.progress.step)
        return self.record.config, len(self.record.tasks), progress


class RunDirectory:
    """The directory of one run.

    The checkpoint decides which tasks are finished. When a run is resumed, tasks that its records hold beyond the
    checkpoint are dropped from them and learnt again.
    """

    def __init__(self, folder: Path, checkpoint_every: str) -> None:
        self.folder = folder
        self.checkpoints = Checkpoints(folder / "checkpoint")
        self.interval = checkpoint_interval(checkpoint_every)
        self._begin_interval()

    def locked(self) -> AbstractContextManager[None]:
        """Lock the directory; raise UserError if another process has, or if it holds anything but a run."""
        return locked(self.folder, "run", self._is_run_or_empty())

    def _is_run_or_empty(self) -> bool:
        """Whether there is a run, nothing at all, or what a run leaves that was stopped before its first checkpoint."""
        if not self.folder.is_dir():
            return False
        found = {path.name for path in self.folder.iterdir()}
        scorers = {path.parent.name for path in self.folder.glob("*/record.json") if _is_record(path)}
        begun = found <= BEGUN | scorers and self._locked_before()
        state = self.checkpoints.folder / "state.json"
        ours = _is_record(self.folder / "record.json") or _contains(state, b'"tasks_done"', b'"files"')
        return not found or begun or ours

    def _locked_before(self) -> bool:
        lock = self.folder / LOCK
        return lock.is_file() and not lock.stat().st_size

    def _refuse_special_files(self, scorers: Iterable[str]) -> None:
        """Raise UserError if a file or folder that the run writes is a link, a pipe or a device."""
        for scorer in scorers:
            folder = self._folder_of(scorer)
            inner = [folder / ARRAYS, folder / "checkpoint"]
            files = [path for one in inner if one.is_dir() for path in one.iterdir()]
            own = [folder / name for name in ("record.json", CHECKSUMS, "log.jsonl", "remarks.csv")]
            refuse_special([*(() if scorer == MAIN else [folder]), *own, *inner, *files], "run", folders=True)

    def restore(self, setup: RunSetup) -> RunState:
        """Return the state of the last checkpoint, or that of a new run.

        Raises:
            UserError: The directory holds a run with other settings or other data, or a damaged file.
        """
        self._refuse_special_files(setup.records)
        if not (self.folder / "record.json").exists():
            return RunState(setup.records)
        for folder in map(self._folder_of, setup.records):
            verify_predictions(folder)
        record = read_record(self.folder)
        kept, wanted = (identity(one, setup.configured) for one in (record, setup.record))
        refuse_other_run(self.folder, kept, wanted)
        if kept["dataset"] != wanted["dataset"] and setup.context.fabric.is_global_zero:
            self._rename_dataset(wanted["dataset"], setup.records)
        record = read_record(self.folder)
        if not self.checkpoints.exists:  # a finished run whose model was removed is still finished
            return RunState(self._read_records(setup.records) if record.summary else setup.records)
        return self._last_checkpoint(record, setup)

    def _last_checkpoint(self, record: Record, setup: RunSetup) -> RunState:
        meta, parts = self.checkpoints.load()
        if unknown := meta.keys() - _meta(RunState({MAIN: record})).keys():
            raise UserError(f"checkpoint: {self.checkpoints.folder / 'state.json'} is damaged (key {min(unknown)!r})")
        done = meta["tasks_done"]
        records = self._read_records(setup.records) if done else {**setup.records, MAIN: record}
        now = setup.record.provenance
        if setup.config.threads is None:  # with another number of threads, sums would be rounded otherwise
            torch.set_num_threads(record.provenance["threads"])
            now = now | {"threads": record.provenance["threads"]}
        changes = {"provenance": resumed_provenance(record.after(done), now)}
        state = RunState({name: one.after(done).model_copy(update=changes) for name, one in records.items()})
        method, tasks = setup.configured.method, setup.stream.tasks
        if done:
            state.snapshot = restore_snapshot(parts["snapshot"], method, tasks[done - 1].classes, setup.context)
            state.memory = Memory(parts["memory"]["indices"].split(meta["memory_counts"]))
        if meta["progress"]:
            classes = tasks[done].classes
            state.progress = _restore_progress(parts["progress"], meta["progress"], method, classes, setup.context)
        return state

    def _read_records(self, scorers: Iterable[str]) -> dict[str, Record]:
        return {name: read_record(self._folder_of(name)) for name in scorers}

    def _rename_dataset(self, dataset: str, scorers: Iterable[str]) -> None:
        """Let the records state the new place of data that have moved."""
        for folder in map(self._folder_of, scorers):
            if (folder / "record.json").exists():
                record = read_record(folder)
                write_record(folder, record.model_copy(update={"config": record.config | {"dataset": dataset}}))

    def _folder_of(self, scorer: str) -> Path:
        """Return the folder of a scorer's record and predictions: the main scorer's is the directory itself."""
        return self.folder if scorer == MAIN else self.folder / scorer

    def write_remarks(self, remarks: Sequence[Remark]) -> None:
        """Write `remarks.csv`: image files that were left out, and oddities; remove an older one."""
        path = self.folder / "remarks.csv"
        path.unlink(missing_ok=True)
        if remarks:
            text = StringIO()
            csv.writer(text).writerows([Remark._fields, *remarks])
            write_atomic(path, text.getvalue().encode())

    def write_task(self, state: RunState, predictions: Mapping[str, Predictions]) -> None:
        """Write a finished task: predictions, records, and last the checkpoint that makes it count."""
        assert state.snapshot is not None
        if not self.checkpoints.exists:  # so that a summary without a checkpoint means that the model was removed
            self.checkpoints.save(_meta(RunState({MAIN: state.record.after(0)})), {})
        for name, record in reversed([*state.records.items()]):  # the main one last: its summary speaks for all
            write_predictions(self._folder_of(name), len(record.tasks), predictions[name])
            write_record(self._folder_of(name), record)
        parts = {"snapshot": snapshot_tensors(state.snapshot), "memory": {"indices": state.memory.indices}}
        self.checkpoints.save(_meta(state), parts)
        self._begin_interval()

    def write_progress(self, state: RunState) -> None:
        """Write a checkpoint inside a task; the snapshot and the memory before the task are on disk already."""
        assert state.progress is not None
        unchanged = dict.fromkeys(("snapshot", "memory")) if state.snapshot else {}
        if not state.snapshot:
            write_record(self.folder, state.record)
        self.checkpoints.save(_meta(state), {**unchanged, "progress": _progress_tensors(state.progress)})
        self._begin_interval()

    def checkpoint_due(self) -> bool:
        """Whether it is time for another checkpoint. To be called once per step."""
        steps, seconds = self.interval
        self.steps_since += 1
        if steps:
            return self.steps_since >= steps
        return time.monotonic() - self.since >= (seconds or 0.0)

    def log(self, **event: Any) -> None:
        """Append a line to `log.jsonl`."""
        line = json.dumps({"time": datetime.now(UTC).isoformat(timespec="seconds"), **event})
        append_line(self.folder / "log.jsonl", line)

    def _begin_interval(self) -> None:
        self.steps_since, self.since = 0, time.monotonic()


def _is_record(path: Path) -> bool:
    return _contains(path, b'"config"', b'"task_sizes"')


def _contains(path: Path, *words: bytes) -> bool:
    """Return whether a file contains all these words; False if it can't be read."""
    try:
        content = read_file(path)
    except OSError:
        return False
    return all(word in content for word in words)


def _meta(state: RunState) -> dict[str, Any]:
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
    return join_groups(groups)


def _restore_progress(
    tensors: Mapping[str, Tensor],
    position: Mapping[str, Any],
    method: Method,
    classes: ClassTable,
    context: ExecutionContext,
) -> Progress:
    groups = split_groups(tensors)
    old = {f"network/{name}": value for name, value in groups.get("network", {}).items()}  # early 0.1.0 had no "model"
    network, scorers = restore_model(groups.get("model", old), method, classes, context)
    sums = {name: value.to(context.fabric.device) for name, value in groups.get("sums", {}).items()}
    kept = {
        name.removeprefix("kept."): restore_snapshot(group, method, classes, context)
        for name, group in groups.items()
        if name.startswith("kept.")
    }
    scaler = _restore_scaler(position["scaler"], context) if "scaler" in position else None
    where = {name: position[name] for name in _POSITION}
    return Progress(network, scorers, kept, **where, sums=sums, momentum=groups.get("momentum", {}), scaler=scaler)


def _restore_scaler(state: dict[str, Any], context: ExecutionContext) -> GradScaler:
    scaler = GradScaler(context.fabric.device.type)
    scaler.load_state_dict(state)
    return scaler
