"""Statistics over runs with different seeds: means, standard deviations, confidence intervals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, nan, sqrt
from statistics import fmean

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student


@dataclass(frozen=True)
class Estimate:
    """A mean over runs, their standard deviation, and a confidence interval of the mean.

    Of a single run the deviation is nan, and the interval has no bounds.
    """

    mean: float
    deviation: float
    low: float
    high: float
    count: int

    def text(self, digits: int = 1) -> str:
        """Return the mean and, of two runs or more, the deviation.

        >>> estimate([1.0, 2.0]).text(), estimate([-0.01]).text()
        ('1.5 ± 0.7', '0.0')
        """
        deviation = f" ± {self.deviation:.{digits}f}" if self.count > 1 else ""
        return f"{self.mean:z.{digits}f}{deviation}"


def estimate(values: Sequence[float], level: float = 0.95) -> Estimate:
    """Return the mean, the standard deviation, and Student's t-interval of the mean.

    >>> one = estimate([1.0, 2.0, 3.0])
    >>> one.mean, one.deviation, round(one.low, 2), round(one.high, 2)
    (2.0, 1.0, -0.48, 4.48)
    """
    count, mean = len(values), fmean(values)
    if count == 1:
        return Estimate(mean, nan, -inf, inf, 1)
    deviation = float(np.std(values, ddof=1))  # statistics.stdev fails on nan
    half = float(student.ppf((1 + level) / 2, count - 1)) * deviation / sqrt(count)
    return Estimate(mean, deviation, mean - half, mean + half, count)


def bootstrap(
    values: NDArray[np.float64],
    statistic: Callable[[NDArray[np.float64]], float] = lambda values: float(values.mean()),
    *,
    level: float = 0.95,
    draws: int = 1_000,
    seed: int = 0,
) -> tuple[float, float]:
    """Return a bootstrap interval of a statistic: quantiles over samples of the values with replacement.

    >>> low, high = bootstrap(np.array([0.0, 1.0] * 50))
    >>> 0.35 < low < 0.5 < high < 0.65
    True
    """
    random = np.random.default_rng(seed)
    found = [statistic(values[random.integers(len(values), size=len(values))]) for _ in range(draws)]
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
