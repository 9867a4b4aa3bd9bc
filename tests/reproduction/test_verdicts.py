"""Verdicts by interval and range."""

from dataclasses import replace
from math import inf, nan

import pytest

from ssil.reproduction.verdicts import Effect, Verdict, joint_verdict


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
        ((1.0, 1.0, 1.0), (0, inf), Verdict.HOLDS),
        ((0.0, 0.0, 0.0), (0, inf), Verdict.FAILS),
        ((nan,), (0, inf), Verdict.UNCLEAR),
    ],
)
def test_the_interval_decides_and_a_single_seed_its_value(
    values: tuple[float, ...], limits: tuple[float, float], verdict: Verdict
) -> None:
    effect = Effect("", values, *limits)
    assert effect.verdict == verdict
    inside, outside = effect.p_values
    by_p = Verdict.HOLDS if inside < 0.05 else Verdict.FAILS if outside < 0.05 else Verdict.UNCLEAR
    assert by_p == verdict


def test_the_interval_of_level_1_minus_p_touches_the_range() -> None:
    effect = Effect("", (1.0, 2.5, 4.0, 2.0), 0.5, 9.0)
    inside, _ = effect.p_values
    comparisons = 0.05 / inside  # `comparisons` need not be whole here
    assert replace(effect, comparisons=comparisons).estimate.low == pytest.approx(0.5)  # type: ignore[arg-type]


def test_all_numbers_of_a_claim_must_hold_but_those_beside() -> None:
    clear, unclear, failed = Effect("", (3.0, 4.0, 5.0)), Effect("", (1.0, 9.0, 17.0)), Effect("", (-1.0, -1.1, -0.9))
    assert joint_verdict([clear, clear]) == Verdict.HOLDS
    assert joint_verdict([clear, unclear]) == Verdict.UNCLEAR
    assert joint_verdict([clear, unclear, failed]) == Verdict.FAILS
    beside = replace(failed, beside=True)
    assert joint_verdict([clear, beside]) == Verdict.HOLDS
    assert joint_verdict([beside]) == Verdict.NOT_APPLICABLE
