"""What is tracked of a run: points on one axis, all of which the record holds.

A step is an epoch of any phase, or the evaluation after a task. So each point has a step of its own, the same whenever
and by whichever process it is computed.
"""

from collections.abc import Mapping, Sequence
from math import isfinite

from ssil.metrics import latest_share, newest_share
from ssil.record import Record, TaskRecord, flat

Losses = Mapping[str, Mapping[str, Sequence[float]]]
"""Of a task so far: by phase, part and epoch."""

Point = tuple[int, dict[str, float]]
"""A step, and what was measured there."""

SCORES = ("score_old", "score_new", "score_gap", "softmax_old", "softmax_new")

Setting = bool | int | float | str


def history(record: Record) -> list[Point]:
    """The points of the tasks that are done, one for each step from 1 on."""
    points: list[Point] = []
    for task in record.tasks:
        points += epochs(task.loss, len(points))
        points.append((len(points) + 1, _results(task)))
    if record.summary:
        points[-1][1].update({f"summary/{name}": value for name, value in record.summary.model_dump().items()})
    return points


def epochs(losses: Losses, before: int) -> list[Point]:
    """The points of a task's epochs, after so many steps.

    >>> epochs({"main": {"ce": [2.0, 1.0]}, "balanced": {"ce": [0.5]}}, before=7)
    [(8, {'loss/main/ce': 2.0}), (9, {'loss/main/ce': 1.0}), (10, {'loss/balanced/ce': 0.5})]
    """
    found = [
        {f"loss/{phase}/{part}": values[epoch] for part, values in parts.items() if epoch < len(values)}
        for phase, parts in losses.items()
        for epoch in range(max(map(len, parts.values()), default=0))
    ]
    return list(enumerate(found, before + 1))


def _results(task: TaskRecord) -> dict[str, float]:
    """A task's numbers that exist."""
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
        "memory/peak_memory_mb": task.peak_memory_mb,
        "images_per_second/task": task.images_per_second,
        "stream/task": task.task,
        "stream/classes_seen": task.classes_seen,
        "stream/seconds": task.seconds,
    }
    return {name: float(value) for name, value in values.items() if value is not None and isfinite(value)}


def settings(record: Record) -> dict[str, Setting]:
    """What the run was told, as hyper-parameters."""
    told = flat(record.config | {"task_sizes": record.task_sizes})
    return {name: value if isinstance(value, Setting) else str(value) for name, value in told.items()}
