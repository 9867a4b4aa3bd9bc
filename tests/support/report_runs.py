"""Simulated runs for reports: three tasks of two classes, four test images per class."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from ssil.benchmark.record import Record, TaskRecord, write_predictions, write_record
from ssil.benchmark.results import Run
from ssil.learning.metrics import Predictions

TRAINING: dict[str, Any] = {
    "epochs": 8,
    "later_epochs": None,
    "lr": [0.1, 0.03, 0.01],
    "milestones": [4, 7],
    "decay": 0.1,
    "lr_by_task": False,
    "batch": 128,
    "momentum": 0.9,
    "weight_decay": 1e-4,
    "new_head_init": "default",
    "increments": 3,
}
CONFUSIONS = ([[8]], [[4, 4], [0, 8]], [[2, 0, 6], [0, 4, 4], [0, 0, 8]])
"""After each task; at the end 18 of 24 predictions fall on the newest task."""


def task(number: int, top1: float, **changes: Any) -> TaskRecord:
    """The record of a task, with all fields."""
    usual: dict[str, Any] = dict.fromkeys(TaskRecord.model_fields) | {
        "task": number,
        "classes_seen": 2 * number,
        "top1": top1,
        "top5": min(top1 + 20, 100.0),
        "task_top1": [top1] * number,
        "confusion": CONFUSIONS[number - 1],
        "score_old": None if number == 1 else -1.0,
        "score_new": 1.0,
        "score_gap": None if number == 1 else 2.0,
        "softmax_old": None if number == 1 else 0.05,
        "softmax_new": 0.5 if number == 1 else 0.2,
        "teacher_ratio": None if number == 1 else [[1.0], [0.25, 0.75]][number - 2],
        "memory_counts": [2] * 2 * number,
        "exemplar_bytes": 4_000,
        "parameters": 1_000,
        "model_bytes": 4_200,
        "stored_bytes": 300,
        "loss": {"main": {"ce": [1.0, 0.5]}},
        "seconds": 10.0,
        "seconds_by_phase": {"main": 9.0},
        "images_seen": 900,
        "gradient_steps": 9,
        "images_per_second": 100.0,
        "peak_memory_mb": 500.0 + number,
    }
    return TaskRecord(**usual | changes)


def record(
    method: str = "ft", top1: Sequence[float] = (90, 60, 40), sizes: Sequence[int] = (2, 2, 2), **config: Any
) -> Record:
    """A run, with a summary if it has done all tasks; `config` as in a real one."""
    usual = {
        "dataset": "some",
        "method": method,
        "backbone": "resnet18",
        "selection": "random",
        "seed": 0,
        "options": {},
    }
    described = {"training": TRAINING, "memory": {"kind": "fixed", "total": 12}, "data_fingerprint": "f00d"}
    classes = sum(sizes)
    result = Record(
        config=usual | described | config,
        provenance={"ssil": "0.1.0", "torch": "2.13", "command": f"ssil run --method {method}"},
        class_order=list(range(classes)),
        class_names=[f"class {c}" for c in range(classes)],
        task_sizes=list(sizes),
    )
    for number, value in enumerate(top1, 1):
        result = result.with_task(task(number, value))
    return result


def run(*arguments: Any, folder: str = "runs/some", **settings: Any) -> Run:
    """The same, as if found in a folder."""
    return Run(Path(folder), record(*arguments, **settings))


def written(folder: Path, *arguments: Any, predicted: Sequence[int] | None = None, **settings: Any) -> Path:
    """The same on disk; `predicted` is the best class of each of the last task's 24 test images, four a class."""
    folder.mkdir(parents=True)
    result = record(*arguments, **settings)
    write_record(folder, result)
    if predicted is not None:
        parts = {part.name: torch.zeros(24) for part in fields(Predictions)}
        parts |= {"labels": torch.arange(6).repeat_interleave(4), "top": torch.tensor(predicted).unsqueeze(1)}
        write_predictions(folder, len(result.tasks), Predictions(**parts))
    return folder
