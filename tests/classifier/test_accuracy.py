"""Confidence intervals: against scipy's, and how often they contain the truth where images come in groups."""

import numpy as np
import pytest
from scipy.stats import binomtest

from ssil.classifier.accuracy import ClassResult, grouped_interval, wilson


@pytest.mark.parametrize(("correct", "total"), [(0, 1), (1, 1), (3, 4), (50, 60), (999, 1000), (0, 7)])
def test_the_interval_is_wilsons(correct: int, total: int) -> None:
    expected = binomtest(correct, total).proportion_ci(0.95, method="wilson")
    assert tuple(wilson(correct / total, total)) == pytest.approx((100 * expected.low, 100 * expected.high))
    assert ClassResult(correct, total).interval == wilson(correct / total, total)
    assert ClassResult(0, 0).interval is None
    assert ClassResult(0, 0).percent is None


def coverage(rng: np.random.Generator, size: int, alike: float, grouped: bool) -> float:
    """How often an interval over 40 groups contains 80 %, where groups have shares that vary around it."""
    inside = 0
    for _ in range(1000):
        shares = rng.beta(0.8 / alike, 0.2 / alike, 40)
        groups = [ClassResult(int(rng.binomial(size, share)), size) for share in shares]
        together = [ClassResult(sum(one.correct for one in groups), 40 * size)]
        interval = grouped_interval(groups) if grouped else together[0].interval
        assert interval
        inside += interval.low <= 80 <= interval.high
    return inside / 1000


def test_the_interval_of_groups_contains_the_truth_where_that_of_images_does_not() -> None:
    rng = np.random.default_rng(0)
    assert coverage(rng, size=8, alike=1.0, grouped=True) > 0.92
    assert coverage(rng, size=8, alike=1.0, grouped=False) < 0.75
    assert coverage(rng, size=8, alike=0.001, grouped=True) > 0.92


def test_groups_of_one_image_give_wilsons_interval_and_groups_that_agree_that_of_their_number() -> None:
    single = [ClassResult(int(n % 4 > 0), 1) for n in range(100)]
    assert tuple(grouped_interval(single) or ()) == pytest.approx(tuple(wilson(0.75, 99)), abs=0.1)
    agreeing = [ClassResult(5 * (n % 4 > 0), 5) for n in range(40)]
    assert tuple(grouped_interval(agreeing) or ()) == pytest.approx(tuple(wilson(0.75, 40)), abs=0.5)
    assert grouped_interval([]) is None
