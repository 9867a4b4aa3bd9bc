"""Accuracies with confidence intervals: images that are right, of how many, in how many independent groups."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

LEVEL, QUANTILE = 95, 1.959963984540054
"""The confidence level in percent, and the number of standard deviations that it stands for."""


class Interval(NamedTuple):
    """A confidence interval in percent."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:.0f} to {self.high:.0f} %"


class ClassResult(NamedTuple):
    """How many of a class's images, or of several classes' images, are classified correctly."""

    correct: int
    total: int

    @property
    def percent(self) -> float | None:
        """The accuracy in percent; None without images."""
        return 100 * self.correct / self.total if self.total else None

    @property
    def interval(self) -> Interval | None:
        """The confidence interval of the accuracy if the images are independent; None without images."""
        return wilson(self.correct / self.total, self.total) if self.total else None


def added(results: Iterable[ClassResult]) -> ClassResult:
    """Return the result on the images of several classes together.

    >>> added([ClassResult(1, 2), ClassResult(3, 4)])
    ClassResult(correct=4, total=6)
    """
    found = [*results]
    return ClassResult(sum(one.correct for one in found), sum(one.total for one in found))


def wilson(share: float, images: float) -> Interval:
    """Return Wilson's score interval (1927) of a share that was found on so many independent images.

    Unlike the share plus or minus its deviations it stays between 0 and 100 %, and is not empty at 0 and 100 %.

    >>> str(wilson(0.9, 10)), str(wilson(1, 4)), str(wilson(0.9, 1000))
    ('60 to 98 %', '51 to 100 %', '88 to 92 %')
    """
    squared = QUANTILE**2
    centre = share + squared / (2 * images)
    spread = QUANTILE * math.sqrt(share * (1 - share) / images + squared / (4 * images**2))
    low, high = ((centre + sign * spread) / (1 + squared / images) for sign in (-1, 1))
    return Interval(100 * max(0.0, low), 100 * min(1.0, high))


def grouped_interval(groups: Sequence[ClassResult]) -> Interval | None:
    """Return the interval of the accuracy on images that come in groups whose images are alike; None without images.

    Alike images are right or wrong together, so that they tell less than as many independent ones. Wilson's interval
    is taken for the number of independent images that would give the same deviation: share (1 - share) / variance,
    with the variance of a ratio of sums over groups (Cochran 1977, section 2.11); between the number of groups of
    equal size that would vary as much (Kish) and the number of images.

    >>> str(grouped_interval([ClassResult(9, 10)] * 10)), str(grouped_interval([ClassResult(10, 10)] * 10))
    ('83 to 94 %', '72 to 100 %')
    >>> str(grouped_interval([ClassResult(10, 10)] * 9 + [ClassResult(0, 10)]))
    '60 to 98 %'
    """
    correct, images = added(groups)
    if not images:
        return None
    share, count = correct / images, sum(1 for one in groups if one.total)
    fewest = images**2 / sum(one.total**2 for one in groups)
    deviations = sum((one.correct - share * one.total) ** 2 for one in groups)
    variance = deviations * count / max(1, count - 1) / images**2
    if share in (0, 1):
        return wilson(share, fewest)
    effective = share * (1 - share) / variance if variance else math.inf
    return wilson(share, min(max(effective, fewest), images))
