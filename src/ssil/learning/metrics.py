"""Metrics: pure functions of predictions. Accuracies and shares are in percent."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import isnan, sqrt
from statistics import fmean
from typing import TypedDict

import torch
from torch import Tensor

from ssil.core.classes import ClassTable


@dataclass(frozen=True)
class Predictions:
    """The predictions for N test images after a task. Means over the old classes are nan in the first task."""

    labels: Tensor
    """(N,) true classes"""
    top: Tensor
    """(N, k) the k classes of the highest scores, best first; k = min(5, number of seen classes)"""
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
    score_spread: Tensor
    """(N,) root mean square over the classes of (score - mean score of its group, old or new); nan if unknown"""
    within_task: Tensor | None = None
    """(N,) the class of the highest score among those of the true class's task; None if unknown"""

    @property
    def correct(self) -> Tensor:
        """(N,) whether the best class is the true class."""
        return self.top[:, 0] == self.labels


def top1(predictions: Predictions) -> float:
    """Top-1 accuracy: 100 * (images whose best class is the true class) / images."""
    return _percent(predictions.correct)


def top5(predictions: Predictions) -> float:
    """Top-5 accuracy: 100 * (images whose true class is among the five best) / images.

    It is 100 while there are at most five classes.
    """
    return _percent((predictions.top == predictions.labels.unsqueeze(1)).any(1))


def task_top1(predictions: Predictions, classes: ClassTable) -> list[float]:
    """The top-1 accuracy on the images of each task, the best class being taken over all seen classes.

    It is nan for a task without test images.
    """
    task = classes.task_of()[predictions.labels]
    return [_percent(predictions.correct[task == s]) for s in range(classes.task)]


def task_aware_top1(predictions: Predictions) -> float | None:
    """Task-aware top-1 accuracy: the best class is taken over the classes of the image's own task, which is told.

    It is that of task-incremental learning, never below `top1`. None if the predictions do not have it.
    """
    if predictions.within_task is None:
        return None
    return _percent(predictions.within_task == predictions.labels)


def class_top1(predictions: Predictions, classes: ClassTable) -> list[float]:
    """The top-1 accuracy on the images of each class, in order of arrival; nan for a class without test images."""
    images, hits = (
        torch.bincount(predictions.labels, weights=weights, minlength=classes.seen).double()
        for weights in (None, predictions.correct.double())
    )
    accuracies: list[float] = (100 * hits / images).tolist()
    return accuracies


def interval(predictions: Predictions, level: float = 0.95) -> tuple[float, float]:
    """A confidence interval of top-1 accuracy: the percentile bootstrap over the test images, in its closed form.

    Its ends are the (1 - level) / 2 and (1 + level) / 2 quantiles of Binomial(images, accuracy) / images: the number of
    correct images in a sample with replacement is binomial. The variation between seeds is not included.
    """
    from scipy.stats import binom  # takes a second to import

    images, share = len(predictions.labels), _mean(predictions.correct)
    low, high = binom.ppf([(1 - level) / 2, (1 + level) / 2], images, share)
    return 100 * float(low) / images, 100 * float(high) / images


def calibration_error(predictions: Predictions, bins: int = 15) -> float:
    """The expected calibration error (Guo et al., ICML 2017), in percentage points.

    The sum over bins of (images in the bin / images) * |mean confidence - accuracy in the bin|. The bins have equal
    width and include their upper edge.
    """
    edges = torch.arange(1, bins, dtype=torch.float64) / bins
    excess = predictions.confidence.double() - predictions.correct.double()
    sums = torch.bincount(torch.bucketize(predictions.confidence.double(), edges), weights=excess, minlength=bins)
    return 100 * float(sums.abs().sum()) / len(excess)


def confusion(predictions: Predictions, classes: ClassTable) -> list[list[int]]:
    """The number of images by task of the true class (rows) and task of the predicted class (columns)."""
    task_of = classes.task_of()
    cells = task_of[predictions.labels] * classes.task + task_of[predictions.top[:, 0]]
    counts: list[list[int]] = torch.bincount(cells, minlength=classes.task**2).view(classes.task, -1).tolist()
    return counts


def newest_share(confusion: Sequence[Sequence[int]]) -> float:
    """The newest task's share of the predictions: 100 * (last column of the confusion matrix) / images.

    >>> newest_share([[3, 1], [1, 3]])
    50.0
    """
    return 100 * sum(row[-1] for row in confusion) / sum(map(sum, confusion))


def latest_share(teacher_ratio: Sequence[float]) -> float:
    """The latest old task's share of the previous model's predictions for images of new classes (Fig. 2, right).

    >>> latest_share([0.25, 0.75])
    75.0
    """
    return 100 * teacher_ratio[-1]


class MeanScores(TypedDict):
    """Means over all images and the classes of a group; None if there is no class in it."""

    score_old: float | None
    score_new: float | None
    softmax_old: float | None
    softmax_new: float | None


def mean_scores(predictions: Predictions) -> MeanScores:
    """The mean score and the mean probability of old and of new classes, over all images (Fig. 6 a-c)."""
    return {
        "score_old": _known(_mean(predictions.score_old)),
        "score_new": _known(_mean(predictions.score_new)),
        "softmax_old": _known(_mean(predictions.softmax_old)),
        "softmax_new": _known(_mean(predictions.softmax_new)),
    }


def score_gap(predictions: Predictions) -> float:
    """The bias to new classes: (mean score of new classes - mean score of old classes) / spread.

    The spread is the root mean square over images and classes of (score - mean score of the class's group in the
    image), the usual difference between classes. Below zero, old classes score higher. nan if there is no old class.
    """
    gap, spread = _mean(predictions.score_new) - _mean(predictions.score_old), _mean(predictions.score_spread.square())
    return gap / max(sqrt(spread), 1e-12)  # finite, even if all classes have the same score


def average(values: Sequence[float]) -> float:
    """Average incremental accuracy: the mean of the accuracies after each task, the first included."""
    return fmean(values)


def forgetting(history: Sequence[Sequence[float | None]]) -> float:
    """The mean over the tasks s before the last of (best accuracy on s before the last task) - (final accuracy on s).

    `history` holds `task_top1` after each task; tasks of which it has None, since they brought no class, don't count.

    >>> forgetting([[90.0], [70.0, 80.0], [60.0, 85.0, 90.0]])
    12.5
    """
    drops = [max(before) - final for *before, final in _courses(history) if before]
    return fmean(drops) if drops else 0.0


def _courses(history: Sequence[Sequence[float | None]]) -> list[list[float]]:
    """Return for each task that brought a class the accuracy on it after it, after the next task, and so on."""
    courses = [[after[s] for after in history[s:]] for s in range(len(history))]
    return [[top1 for top1 in course if top1 is not None] for course in courses if None not in course]


def backward_transfer(history: Sequence[Sequence[float | None]]) -> float:
    """The mean over the tasks s before the last of (final accuracy on s) - (accuracy on s right after task s).

    `history` holds `task_top1` after each task. Below zero, accuracy on earlier tasks has been lost.

    >>> backward_transfer([[90.0], [70.0, 80.0], [60.0, 85.0, 90.0]])
    -12.5
    """
    gains = [course[-1] - course[0] for course in _courses(history) if len(course) > 1]
    return fmean(gains) if gains else 0.0


@dataclass(frozen=True)
class Evaluation:
    """The metrics after one task."""

    top1: float
    top5: float
    interval: tuple[float, float]
    task_top1: list[float]
    class_top1: list[float]
    newest_share: float
    calibration_error: float
    score_gap: float


def evaluate_run(predictions: Sequence[Predictions], task_sizes: Sequence[int]) -> list[Evaluation]:
    """Return the metrics after each finished task of a stream."""
    bounds = tuple(accumulate(task_sizes, initial=0))
    tables = [ClassTable(("?",) * bounds[task], bounds[: task + 1]) for task in range(1, len(predictions) + 1)]
    return [_evaluation(found, classes) for found, classes in zip(predictions, tables, strict=True)]


def _evaluation(predictions: Predictions, classes: ClassTable) -> Evaluation:
    return Evaluation(
        top1(predictions),
        top5(predictions),
        interval(predictions),
        task_top1(predictions, classes),
        class_top1(predictions, classes),
        newest_share(confusion(predictions, classes)),
        calibration_error(predictions),
        score_gap(predictions),
    )


def _known(value: float) -> float | None:
    return None if isnan(value) else value


def _percent(hits: Tensor) -> float:
    return 100 * _mean(hits)


def _mean(values: Tensor) -> float:
    return float(values.double().mean())
