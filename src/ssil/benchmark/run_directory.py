"""A run directory: its lock, records, predictions, checkpoints and log."""

import csv
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

from ssil.benchmark.checkpoint import Checkpoints
from ssil.benchmark.checksums import ARRAYS, CHECKSUMS
from ssil.benchmark.config import checkpoint_interval
from ssil.benchmark.record import Record, read_record, verify_predictions, write_predictions, write_record
from ssil.benchmark.run_identity import identity, refuse_other_run
from ssil.benchmark.run_setup import RunSetup
from ssil.benchmark.run_state import RunState, SavedState, memory_tensors, progress_tensors, state_meta
from ssil.core.errors import UserError, one_line
from ssil.core.files import LOCK, append_line, locked, read_file, refuse_special, write_atomic
from ssil.data.image_index import Remark
from ssil.learning.metrics import Predictions
from ssil.learning.model_state import snapshot_tensors
from ssil.learning.snapshot import MAIN

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
        scorers = {path.parent.name for path in self.folder.glob("*/record.json") if is_record(path)}
        begun = found <= BEGUN | scorers and self._locked_before()
        state = self.checkpoints.folder / "state.json"
        ours = is_record(self.folder / "record.json") or _contains(state, b'"tasks_done"', b'"files"')
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
        try:
            saved = SavedState(setup, parts, **meta)
            records = self._read_records(setup.records) if saved.tasks_done else {**setup.records, MAIN: record}
            return saved.restore(records)
        except UserError:
            raise
        except Exception as error:  # of any type: the state may be made to cause it
            path, cure = self.checkpoints.folder / "state.json", "start again in a new folder"
            raise UserError(f"checkpoint: {path} does not fit this run ({one_line(error)}); {cure}") from error

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
            self.checkpoints.save(state_meta(RunState({MAIN: state.record.after(0)})), {})
        for name, record in reversed([*state.records.items()]):  # the main one last: its summary speaks for all
            write_predictions(self._folder_of(name), len(record.tasks), predictions[name])
            write_record(self._folder_of(name), record)
        parts = {"snapshot": snapshot_tensors(state.snapshot), "memory": memory_tensors(state.memory)}
        self.checkpoints.save(state_meta(state), parts)
        self._begin_interval()

    def write_progress(self, state: RunState) -> None:
        """Write a checkpoint inside a task; the snapshot and the memory before the task are on disk already."""
        assert state.progress is not None
        unchanged = dict.fromkeys(("snapshot", "memory")) if state.snapshot else {}
        if not state.snapshot:
            write_record(self.folder, state.record)
        self.checkpoints.save(state_meta(state), {**unchanged, "progress": progress_tensors(state.progress)})
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


def is_record(path: Path) -> bool:
    """Return whether a file is a record by its content, whole or not."""
    return _contains(path, b'"config"', b'"task_sizes"')


def _contains(path: Path, *words: bytes) -> bool:
    """Return whether a file contains all these words; False if it can't be read."""
    try:
        content = read_file(path)
    except OSError:
        return False
    return all(word in content for word in words)
