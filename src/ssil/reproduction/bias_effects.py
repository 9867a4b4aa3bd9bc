"""The effects behind the claims about bias: scores, probabilities and predictions of old and new classes.

What a claim says of every t is told by a run's own extremes over t = 2 to T: one number per seed, so that there is
nothing to correct for.
"""

from collections.abc import Callable, Sequence
from math import inf, nan

import numpy as np

from ssil.benchmark.record import Record, TaskRecord
from ssil.learning.metrics import latest_share, newest_share
from ssil.reproduction.evidence import Evidence
from ssil.reproduction.rows import GKD, TKD
from ssil.reproduction.verdicts import Effect

OVERLAP = 0.25
"""Scores of old and new classes overlap if their means differ by less than this many standard deviations."""
MOST = 50.0
"""Percentage above which predictions are called "most"."""
ALIKE = 2.0
"""Probabilities, or shares of predictions, are about the same if they differ by less than this factor."""

SEPARATED = ("SS-IL", "CE-SS")
"""The models of Fig. 6 and 7 with a separated softmax."""
ONE_SOFTMAX = ("CE", "CE+TKD (replay)")
"""Those without."""

Series = Callable[[Record], Sequence[float]]


def _old_on_newest(record: Record) -> float:
    """Return the final percentage of old tasks' test images that are predicted as classes of the newest task."""
    old = record.tasks[-1].confusion[:-1]
    return 100 * sum(row[-1] for row in old) / sum(map(sum, old))


def _latest_share(record: Record) -> float:
    """Return the percentage of the old model's predictions on new data that fall on the latest old task, from t = 3."""
    return float(np.mean([latest_share(task.teacher_ratio) for task in record.tasks[2:] if task.teacher_ratio]))


def score_gaps(record: Record) -> list[float]:
    """Return the gaps between mean scores of new and old classes, in deviations, from t = 2; nan where not recorded."""
    return [nan if task.score_gap is None else task.score_gap for task in record.tasks[1:]]


def softmax_ratios(record: Record) -> list[float]:
    """Return the mean probability of a new class over that of an old one (Fig. 6 c), from t = 2."""
    return [_ratio(task.softmax_new or 0.0, task.softmax_old or 0.0) for task in record.tasks[1:]]


def newest_ratios(record: Record) -> list[float]:
    """Return the newest task's share of the predictions over its share of the test images (Fig. 7), from t = 2."""
    return [newest_share(task.confusion) / _fair_share(task) for task in record.tasks[1:]]


def _fair_share(task: TaskRecord) -> float:
    """Return the percentage of the test images that belong to the newest task."""
    return 100 * sum(task.confusion[-1]) / sum(map(sum, task.confusion))


def _ratio(new: float, old: float) -> float:
    return new / max(old, np.finfo(float).tiny)  # finite, even if all old classes have probability 0


def _newest_share(evidence: Evidence, line: str, low: float, high: float) -> Effect:
    values = evidence.values(_old_on_newest, line)
    return Effect(f"{line}: old images taken for the newest task, %", values, low, high)


def _least(evidence: Evidence, line: str, what: str, series: Series, low: float) -> Effect:
    """Return the least value of a series over t, which must be above `low`."""
    values = evidence.values(lambda record: float(np.min(series(record))), line)
    return Effect(f"{line}: {what}, least of all t", values, low)


def _largest(evidence: Evidence, line: str, what: str, series: Series, high: float) -> Effect:
    """Return the largest value of a series over t, which must be below `high`."""
    values = evidence.values(lambda record: float(np.max(series(record))), line)
    return Effect(f"{line}: {what}, largest of all t", values, -inf, high)


def _between(evidence: Evidence, what: str, series: Series, low: float, high: float) -> list[Effect]:
    """Return the extremes over t for both models with a separated softmax, which must lie in a range."""
    return [
        effect
        for line in SEPARATED
        for effect in (_least(evidence, line, what, series, low), _largest(evidence, line, what, series, high))
    ]


def newest_task(evidence: Evidence, _: int) -> list[Effect]:
    """Claim 2: the share of old classes' test images that are predicted as a class of the newest task."""
    biased = [_newest_share(evidence, line, MOST, inf) for line in (GKD, "FT")]
    return [*biased, _newest_share(evidence, "SS-IL", -inf, MOST)]


def biased_teacher(evidence: Evidence, _: int) -> list[Effect]:
    """Claim 3: the share of new images that the old model predicts as its latest task, under CE+GKD."""
    return [Effect("new images taken for the latest old task, %, t >= 3", evidence.values(_latest_share, GKD), MOST)]


def score_overlap(evidence: Evidence, _: int) -> list[Effect]:
    """Claim 8: the gap between scores of new and old classes at every t: about 0 if separated, else above."""
    what = "(new - old score) / deviation"
    overlapping = _between(evidence, what, score_gaps, -OVERLAP, OVERLAP)
    return [*overlapping, *(_least(evidence, line, what, score_gaps, OVERLAP) for line in ONE_SOFTMAX)]


def tkd_alone(evidence: Evidence, _: int) -> list[Effect]:
    """Claim 14: the share of old test images predicted as the newest task, for CE+TKD with both kinds of batches."""
    return [_newest_share(evidence, line, MOST, inf) for line in ("CE+TKD (replay)", TKD)]


def equal_softmax(evidence: Evidence, _: int) -> list[Effect]:
    """Claim 21: the ratio of the mean probabilities of a new and an old class at every t, with a separated softmax."""
    return _between(evidence, "new / old softmax", softmax_ratios, 1 / ALIKE, ALIKE)


def balanced_predictions(evidence: Evidence, _: int) -> list[Effect]:
    """Claim 22: the newest task's share of the predictions over its fair share at every t, separated softmax."""
    return _between(evidence, "newest task's predictions / its images", newest_ratios, 1 / ALIKE, ALIKE)
