"""From predictions to numbers: pure functions, accuracies in percent, results that JSON can hold."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from statistics import fmean
from typing import TypedDict

import torch
from torch import Tensor

from ssil.types import Classes


@dataclass(frozen=True)
class Predictions:
    """What is kept of each test image after a task. Means over no class (old ones in task 1) are nan."""

    labels: Tensor
    """(N,) true classes"""
    top: Tensor
    """(N, k) the k best classes, best first; k is 5, or all classes where they are fewer"""
    confidence: Tensor
    """(N,) probability of the best class"""
    score_old: Tensor
    """(N,) mean score of the old classes"""
    score_new: Tensor
    """(N,) mean score of the new classes"""
    softmax_old: Tensor
    """(N,) mean probability of the old classes"""
    softmax_new: Tensor
    """(N,) mean probability of the new classes"""

    @property
    def correct(self) -> Tensor:
        """(N,) whether the best class is the true one."""
        return self.top[:, 0] == self.labels


def top1(predictions: Predictions) -> float:
    """The share of images whose class is the best one."""
    return _percent(predictions.correct)


def top5(predictions: Predictions) -> float:
    """The share of images whose class is among the five best; 100 where there are no more than five classes."""
    return _percent((predictions.top == predictions.labels.unsqueeze(1)).any(1))


def task_top1(predictions: Predictions, classes: Classes) -> list[float]:
    """The accuracy on each task's images, the best class being taken over all tasks; nan for a task without images."""
    task = classes.task_of()[predictions.labels]
    return [_percent(predictions.correct[task == s]) for s in range(classes.task)]


def confusion(predictions: Predictions, classes: Classes) -> list[list[int]]:
    """Counts: a row for each true task, a column for each task of the predicted class."""
    task_of = classes.task_of()
    cells = task_of[predictions.labels] * classes.task + task_of[predictions.top[:, 0]]
    counts: list[list[int]] = torch.bincount(cells, minlength=classes.task**2).view(classes.task, -1).tolist()
    return counts


def newest_share(confusion: Sequence[Sequence[int]]) -> float:
    """The share of predictions that fall on the newest task.

    >>> newest_share([[3, 1], [1, 3]])
    50.0
    """
    return 100 * sum(row[-1] for row in confusion) / sum(map(sum, confusion))


class MeanScores(TypedDict):
    """Means over all images; None where there is no old class."""

    score_old: float | None
    score_new: float
    softmax_old: float | None
    softmax_new: float


def mean_scores(predictions: Predictions) -> MeanScores:
    """How high old and new classes score on the average (Fig. 6 a-c)."""
    score_old, softmax_old = _mean(predictions.score_old), _mean(predictions.softmax_old)
    return {
        "score_old": None if isnan(score_old) else score_old,
        "score_new": _mean(predictions.score_new),
        "softmax_old": None if isnan(softmax_old) else softmax_old,
        "softmax_new": _mean(predictions.softmax_new),
    }


def average(values: Sequence[float]) -> float:
    """The mean over all tasks, the first included."""
    return fmean(values)


def forgetting(history: Sequence[Sequence[float]]) -> float:
    """The mean over the tasks before the last of (best earlier accuracy) - (final accuracy).

    `history` holds `task_top1` after each task.

    >>> forgetting([[90.0], [70.0, 80.0], [60.0, 85.0, 90.0]])
    12.5
    """
    *earlier, final = history
    drops = [max(after[s] for after in earlier[s:]) - final[s] for s in range(len(earlier))]
    return fmean(drops) if drops else 0.0


def _percent(hits: Tensor) -> float:
    return 100 * _mean(hits)


def _mean(values: Tensor) -> float:
    return float(values.double().mean())
