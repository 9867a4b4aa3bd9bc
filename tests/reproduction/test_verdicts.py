"""Verdicts by interval and range."""

from math import inf

import pytest

from ssil.reproduction.verdicts import Effect, Verdict, strongest, weakest


@pytest.mark.parametrize(
    ("values", "limits", "verdict"),
    [
        ((3.0, 4.0, 5.0), (0, inf), Verdict.HOLDS),
        ((1.0, 2.0, 3.0), (0, inf), Verdict.UNCLEAR),
        ((-3.0, -4.0, -5.0), (0, inf), Verdict.FAILS),
        ((0.1, 0.2, 0.15), (-1, 1), Verdict.HOLDS),
        ((1.5, 1.6, 1.55), (-1, 1), Verdict.FAILS),
        ((2.0,), (0, inf), Verdict.HOLDS),
        ((0.0,), (0, inf), Verdict.FAILS),
    ],
)
def test_the_interval_decides_and_a_single_seed_its_value(
    values: tuple[float, ...], limits: tuple[float, float], verdict: Verdict
) -> None:
    assert Effect("", values, *limits).verdict == verdict


def test_an_unclear_effect_is_weaker_than_a_clear_one_of_smaller_mean() -> None:
    clear, unclear, failed = Effect("", (3.0, 4.0, 5.0)), Effect("", (1.0, 9.0, 17.0)), Effect("", (-1.0, -1.1, -0.9))
    assert weakest([clear, unclear]) == unclear
    assert weakest([clear, unclear, failed]) == failed
    assert strongest([clear, unclear, failed]) == clear
