"""The results of a run: a small, versioned JSON record, and predictions per test image beside it.

Figures, tables and reports read records only. `docs/records.md` explains every name.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, Literal

import safetensors.torch
import torch
from pydantic import BaseModel, ConfigDict, ValidationError
from safetensors import SafetensorError

from ssil.benchmark.checksums import ARRAYS, read_checked, write_checked
from ssil.benchmark.recorded_config import check_recorded_config, recorded_memory
from ssil.core.errors import UserError
from ssil.core.files import json_bytes
from ssil.core.settings import MAX_SHOWN
from ssil.core.tensor_files import pack
from ssil.learning.metrics import Predictions, average, forgetting

VERSION: Final = 4


class _Part(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, json_schema_serialization_defaults_required=True
    )


class TaskRecord(_Part):
    """The results of one task: accuracies over all classes seen (percent), confusion, scores, memory, losses, cost."""

    task: int
    classes_seen: int
    top1: float
    top5: float
    task_top1: list[float | None]
    confusion: list[list[int]]
    score_old: float | None
    score_new: float | None
    softmax_old: float | None
    softmax_new: float | None
    score_gap: float | None
    teacher_ratio: list[float] | None
    memory_counts: list[int]
    exemplar_bytes: int
    parameters: int | None
    model_bytes: int | None
    loss: dict[str, dict[str, list[float]]]
    seconds: float
    seconds_by_phase: dict[str, float]
    images_seen: int
    gradient_steps: int | None
    images_per_second: float
    peak_memory_mb: float
    stored_bytes: int = 0
    task_aware_top1: float | None = None

    @property
    def kept_bytes(self) -> int | None:
        """The bytes that are kept from this task to the next: model, exemplars, what is stored with them.

        None if the record does not state the model's.
        """
        return None if self.model_bytes is None else self.model_bytes + self.exemplar_bytes + self.stored_bytes

    @property
    def training_seconds(self) -> float:
        """The time spent in training, without evaluation and the choice of exemplars."""
        return sum(self.seconds_by_phase.values())


class Summary(_Part):
    """A stream in a few numbers: averages over all tasks, the first included, and the training's cost in all."""

    average_top1: float
    average_top5: float
    last_top1: float
    forgetting: float
    seconds: float
    images_seen: int
    gradient_steps: int | None
    training_seconds: float


class Record(_Part):
    """The record of a run; once the run is finished, it has a summary."""

    version: Literal[4] = VERSION
    config: dict[str, Any]
    provenance: dict[str, Any]
    class_order: list[int]
    class_names: list[str]
    task_sizes: list[int]
    tasks: list[TaskRecord] = []
    summary: Summary | None = None

    @property
    def label(self) -> str:
        """The run's name or method, and in brackets another scorer, or the method that a branch starts from."""
        chain = f"from {self.config['chain']}" if "chain" in self.config else None
        addition = chain or self.config.get("scorer")
        name = str(self.provenance.get("name") or self.config["method"])
        return f"{name} ({addition})" if addition else name

    @property
    def memory(self) -> Mapping[str, Any]:
        """The memory budget as plain values: its kind and its size."""
        return recorded_memory(self.config)

    def after(self, tasks: int) -> "Record":
        """Return the record as it was after this number of tasks."""
        summary = self.summary if tasks == len(self.task_sizes) else None
        return self.model_copy(update={"tasks": self.tasks[:tasks], "summary": summary})

    def with_task(self, task: TaskRecord) -> "Record":
        """Return the record with one more task, and after the last one with its summary."""
        tasks = [*self.tasks, task]
        done = len(tasks) == len(self.task_sizes)
        return self.model_copy(update={"tasks": tasks, "summary": summarise(tasks) if done else None})


def summarise(tasks: list[TaskRecord]) -> Summary:
    """Return the summary of a stream's tasks."""
    return Summary(
        average_top1=average([task.top1 for task in tasks]),
        average_top5=average([task.top5 for task in tasks]),
        last_top1=tasks[-1].top1,
        forgetting=forgetting([task.task_top1 for task in tasks]),
        seconds=sum(task.seconds for task in tasks),
        images_seen=sum(task.images_seen for task in tasks),
        gradient_steps=_total([task.gradient_steps for task in tasks]),
        training_seconds=sum(task.training_seconds for task in tasks),
    )


def _total(counts: Sequence[int | None]) -> int | None:
    """Return the sum; None if a count is not known."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings as one level, with names joined by dots.

    >>> flat({"seed": 0, "memory": {"kind": "fixed", "total": 500}})
    {'seed': 0, 'memory.kind': 'fixed', 'memory.total': 500}
    """
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return found


def write_record(folder: Path, record: Record) -> None:
    """Write `record.json` atomically, and its checksum."""
    write_checked(folder / "record.json", json_bytes(record.model_dump(mode="json")))


def read_record(folder: str | Path) -> Record:
    """Read the record of a run directory; raise UserError if it is missing or damaged."""
    path = Path(folder) / "record.json"
    try:
        record = Record(**migrate(json.loads(read_checked(path))))
        _check(record)
        return record
    except FileNotFoundError:
        cure = (
            f"give its runs: {folder}/*"
            if [*Path(folder).glob("*/record.json")]
            else "give the --out directory of a run"
        )
        raise UserError(f"run: {folder} holds no record.json; {cure}") from None
    except (OSError, ValueError, TypeError, ValidationError, RecursionError) as error:
        reason = _reason(error)
        raise UserError(f"record: {path} can't be read ({reason}); restore it or run again in a new folder") from None


def _reason(error: Exception) -> str:
    """Return why a record can't be read, on one line; of a record that lacks something, what it lacks."""
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg'][:1].lower()}{first['msg'][1:]}"[:MAX_SHOWN]
    return (str(error).splitlines() or [type(error).__name__])[0][:MAX_SHOWN]


def _check(record: Record) -> None:
    """Raise ValueError if parts of a record contradict each other, as those of a changed file may."""
    check_recorded_config(record.config)
    sizes = record.task_sizes
    least = 0 if "stream" in record.config else 1  # where classes return, a task may bring no new one
    if not sizes or sizes[0] < 1 or min(sizes) < least or sum(sizes) > len(record.class_order):
        raise ValueError(f"task_sizes: {sizes} do not fit {len(record.class_order)} classes")
    if len(record.tasks) > len(sizes) or (record.summary and len(record.tasks) < len(sizes)):
        raise ValueError(f"{len(record.tasks)} tasks of {len(sizes)}")
    for number, task in enumerate(record.tasks, start=1):
        lengths = {len(task.task_top1), len(task.confusion), *map(len, task.confusion)}
        if (task.task, task.classes_seen) != (number, sum(sizes[:number])) or lengths != {number}:
            raise ValueError(f"tasks: number {number} does not fit the stream")


def migrate(raw: Any) -> Mapping[str, Any]:
    """Return a record of an older version in the current form; raise ValueError if its version is unknown."""
    if not isinstance(raw, Mapping):
        raise ValueError("it is not a JSON object")
    newer = dict(raw)
    if newer.get("version") == 1:  # had no `score_gap`
        newer |= {"version": 2, "tasks": [{"score_gap": None, **task} for task in raw.get("tasks", [])]}
    if newer.get("version") == 2:
        try:
            newer |= {"version": 3, **_with_costs(newer.get("tasks", []), newer.get("summary"))}
        except (KeyError, TypeError, AttributeError, ArithmeticError) as error:
            raise ValueError(f"its tasks are damaged: {error!r}") from None
    if newer.get("version") == 3:  # did not count the network's parameters
        size = {"parameters": None, "model_bytes": None}
        newer |= {"version": 4, "tasks": [{**size, **task} for task in newer.get("tasks", [])]}
    if newer.get("version") != VERSION:
        raise ValueError(f"version {raw.get('version')!r} is not known; this ssil reads up to version {VERSION}")
    return newer


def _with_costs(tasks: Sequence[Mapping[str, Any]], summary: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return tasks and summary of version 2 with the costs of version 3.

    Gradient steps were not counted; images seen are speed times seconds, as the speed was images by seconds.
    """
    seconds = [sum(task["seconds_by_phase"].values()) for task in tasks]
    images = [round(task["images_per_second"] * max(each, 1e-9)) for task, each in zip(tasks, seconds, strict=True)]
    costs = {"images_seen": sum(images), "gradient_steps": None, "training_seconds": sum(seconds)}
    newer = [{**task, "images_seen": seen, "gradient_steps": None} for task, seen in zip(tasks, images, strict=True)]
    return {"tasks": newer, "summary": summary and {**summary, **costs}}


def _arrays(folder: Path, task: int) -> Path:
    return folder / ARRAYS / f"task-{task:02d}.safetensors"


def write_predictions(folder: Path, task: int, predictions: Predictions) -> None:
    """Write the predictions after a task, one row per test image."""
    tensors = {part.name: getattr(predictions, part.name) for part in fields(predictions)}
    known = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    write_checked(_arrays(folder, task), pack(known))


def has_predictions(folder: str | Path, task: int) -> bool:
    """Return whether there is a file of predictions after a task."""
    return _arrays(Path(folder), task).exists()


def read_predictions(folder: str | Path, task: int) -> Predictions:
    """Read the predictions after a task; raise UserError if there are none, or they are damaged."""
    path = _arrays(Path(folder), task)
    if not path.exists():
        raise UserError(f"task: {path} is not there; {folder} has no predictions of task {task}")
    try:
        found = safetensors.torch.load(read_checked(path))
        return Predictions(**{"score_spread": torch.full_like(found["score_new"], torch.nan)} | found)
    except (OSError, SafetensorError, KeyError, TypeError) as error:
        raise UserError(f"arrays: {path} can't be read ({error}); restore it, or run again") from None


def verify_predictions(folder: Path) -> None:
    """Raise UserError if any predictions in this folder are damaged."""
    for path in (folder / ARRAYS).glob("task-*.safetensors"):
        try:
            read_checked(path)
        except OSError as error:
            raise UserError(f"arrays: {path} can't be read ({error}); restore it, or run again") from None


if __name__ == "__main__":
    print(json.dumps(Record.model_json_schema(mode="serialization"), indent=1))
