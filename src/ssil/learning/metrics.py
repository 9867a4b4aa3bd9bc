"""From predictions to numbers: pure functions, accuracies in percent, results that JSON can hold."""

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
    score_spread: Tensor
    """(N,) root mean square of how far scores are from the mean of their group, old or new; nan where not kept"""

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


def task_top1(predictions: Predictions, classes: ClassTable) -> list[float]:
    """The accuracy on each task's images, the best class being taken over all tasks; nan for a task without images."""
    task = classes.task_of()[predictions.labels]
    return [_percent(predictions.correct[task == s]) for s in range(classes.task)]


def class_top1(predictions: Predictions, classes: ClassTable) -> list[float]:
    """The accuracy on each class's images, by order of arrival; nan for a class without images."""
    images, hits = (
        torch.bincount(predictions.labels, weights=weights, minlength=classes.seen).double()
        for weights in (None, predictions.correct.double())
    )
    accuracies: list[float] = (100 * hits / images).tolist()
    return accuracies


def interval(predictions: Predictions, level: float = 0.95) -> tuple[float, float]:
    """Top-1 of other test images like these: the percentile bootstrap over the images, in its closed form.

    Of n images drawn again, the hits are binomial. What another seed would change is not in it.
    """
    from scipy.stats import binom  # takes a second to import

    images, share = len(predictions.labels), _mean(predictions.correct)
    low, high = binom.ppf([(1 - level) / 2, (1 + level) / 2], images, share)
    return 100 * float(low) / images, 100 * float(high) / images


def calibration_error(predictions: Predictions, bins: int = 15) -> float:
    """How far confidence is from accuracy, in points: the mean over bins of equal width, weighted by their images.

    A bin has its upper edge in it. This is the expected calibration error (Guo et al. 2017).
    """
    edges = torch.arange(1, bins, dtype=torch.float64) / bins
    excess = predictions.confidence.double() - predictions.correct.double()
    sums = torch.bincount(torch.bucketize(predictions.confidence.double(), edges), weights=excess, minlength=bins)
    return 100 * float(sums.abs().sum()) / len(excess)


def confusion(predictions: Predictions, classes: ClassTable) -> list[list[int]]:
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


def latest_share(teacher_ratio: Sequence[float]) -> float:
    """The share of the latest old task in what the previous model predicts of images of new classes (Fig. 2, right).

    >>> latest_share([0.25, 0.75])
    75.0
    """
    return 100 * teacher_ratio[-1]


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


def score_gap(predictions: Predictions) -> float:
    """How far new classes score above old ones, in deviations of an image's scores; nan where there is no old class.

    The difference of both means over the images (Fig. 6), divided by the root mean square of how far scores are from
    the mean of their group in their image: what classes differ by anyway. Below zero, old classes score higher.
    """
    gap, spread = _mean(predictions.score_new) - _mean(predictions.score_old), _mean(predictions.score_spread.square())
    return gap / max(sqrt(spread), 1e-12)  # finite, even if all classes score alike


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


def backward_transfer(history: Sequence[Sequence[float]]) -> float:
    """The mean over the tasks before the last of (final accuracy) - (accuracy right after the task was learnt).

    `history` holds `task_top1` after each task. Below zero, later tasks have cost accuracy on earlier ones.

    >>> backward_transfer([[90.0], [70.0, 80.0], [60.0, 85.0, 90.0]])
    -12.5
    """
    final = history[-1]
    gains = [final[s] - after[s] for s, after in enumerate(history[:-1])]
    return fmean(gains) if gains else 0.0


@dataclass(frozen=True)
class Evaluation:
    """What the predictions after one task come to."""

    top1: float
    top5: float
    interval: tuple[float, float]
    task_top1: list[float]
    class_top1: list[float]
    newest_share: float
    calibration_error: float
    score_gap: float


def evaluate_run(predictions: Sequence[Predictions], task_sizes: Sequence[int]) -> list[Evaluation]:
    """The numbers of a stream, from the predictions after each task that is done."""
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


def _percent(hits: Tensor) -> float:
    return 100 * _mean(hits)


def _mean(values: Tensor) -> float:
    return float(values.double().mean())
