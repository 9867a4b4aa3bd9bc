"""Numbers of single runs that the paper's claims are about."""

from collections.abc import Sequence

import numpy as np

from ssil import metrics
from ssil.record import Record, TaskRecord


def average(record: Record, k: int) -> float:
    """Average incremental top-k accuracy."""
    assert record.summary
    return record.summary.average_top1 if k == 1 else record.summary.average_top5


def curve(record: Record, k: int) -> list[float]:
    """Top-k accuracy after each task."""
    return [task.top1 if k == 1 else task.top5 for task in record.tasks]


def old_on_newest(task: TaskRecord) -> float:
    """The share (in percent) of old tasks' test images that are taken for one of the newest task."""
    old = task.confusion[:-1]
    return 100 * sum(row[-1] for row in old) / sum(map(sum, old))


def latest_share(record: Record) -> float:
    """How much of the old model's predictions on new data fall on the latest old task (percent, mean from t = 3)."""
    return float(np.mean([metrics.latest_share(task.teacher_ratio) for task in record.tasks[2:] if task.teacher_ratio]))


def slope(values: Sequence[float]) -> float:
    """The rise from one value to the next, by least squares.

    >>> slope([3.0, 2.0, 1.0])
    -1.0
    """
    return round(float(np.polyfit(range(len(values)), values, 1)[0]), 9)


def gaps(record: Record) -> list[float]:
    """From t = 2: between mean old and new scores, in deviations of the scores; nan where a record has it not."""
    return [float("nan") if task.score_gap is None else task.score_gap for task in record.tasks[1:]]
