"""Simulated records for figures."""

from collections.abc import Sequence
from typing import Any

from ssil.benchmark.record import Record, TaskRecord

CONFUSION = [[3, 1], [0, 0]]


def record(method: str, top1: Sequence[float] = (90, 40), config: dict[str, Any] | None = None, **more: Any) -> Record:
    """Return a run with two classes per task; `more` holds a list for each further field, one value per task."""
    tasks = [_task(number, value, more) for number, value in enumerate(top1, 1)]
    return Record(
        config={"method": method, "dataset": "some"} | (config or {}),
        provenance={},
        class_order=list(range(2 * len(tasks))),
        class_names=[str(name) for name in range(2 * len(tasks))],
        task_sizes=[2] * len(tasks),
    ).model_copy(update={"tasks": tasks})


def _task(number: int, top1: float, more: dict[str, Any]) -> TaskRecord:
    unseen: dict[str, Any] = dict.fromkeys(TaskRecord.model_fields) | {"task_top1": [top1] * number}
    unseen |= {"seconds": 0.0, "seconds_by_phase": {}, "images_seen": 0}
    seen = {"task": number, "classes_seen": 2 * number, "top1": top1, "top5": top1 + 5, "confusion": CONFUSION}
    scores = {"score_old": None if number == 1 else -1.0, "score_new": 1.0, "softmax_old": 0.1, "softmax_new": 0.2}
    return TaskRecord.model_construct(
        **unseen | seen | scores | {name: values[number - 1] for name, values in more.items()}
    )
