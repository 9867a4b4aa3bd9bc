"""Verdicts on claims: whether an effect lies in its range, given its values for a few seeds."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from math import inf, isnan, sqrt
from statistics import fmean, stdev

from ssil.benchmark.results import Estimate, estimate

ALPHA = 0.05
"""The chance that a verdict "holds" or "does not hold" may have to be wrong where the effect is on its limit."""


class Verdict(StrEnum):
    """The result of checking a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNCLEAR = "not enough evidence"
    NOT_APPLICABLE = "not applicable"
    NOT_RUN = "not run"


CLEARER = (Verdict.FAILS, Verdict.UNCLEAR, Verdict.HOLDS)
"""Verdicts by how well they support a claim."""


@dataclass(frozen=True)
class Effect:
    """A number that a claim is about: a value per seed, and the range in which it supports the claim.

    `comparisons` widens the interval: it is the number of comparisons from which this one was chosen, or fewer by
    Holm's procedure (`families`). An effect that is `beside` is shown, and does not count.

    >>> Effect("a - b", (1.0, 2.0, 3.0)).verdict, Effect("a - b", (3.0, 4.0, 5.0)).verdict
    (<Verdict.UNCLEAR: 'not enough evidence'>, <Verdict.HOLDS: 'holds'>)
    >>> Effect("a - b", (3.0, 4.0, 5.0), comparisons=7).verdict
    <Verdict.UNCLEAR: 'not enough evidence'>
    """

    what: str
    values: tuple[float, ...]
    low: float = 0.0
    high: float = inf
    comparisons: int = 1
    beside: bool = False

    @property
    def estimate(self) -> Estimate:
        """Mean over seeds, with its interval: 95 %, or wider if it was chosen from several comparisons."""
        return estimate(self.values, 1 - ALPHA / self.comparisons)

    @cached_property
    def margin(self) -> float:
        """How far the mean lies inside the range; below zero, how far outside."""
        mean = fmean(self.values)
        return min(mean - self.low, self.high - mean)

    @cached_property
    def p_values(self) -> tuple[float, float]:
        """The two-sided p-values of lying inside and outside the range, by Student's t.

        The interval of level 1 - p just touches the range from the inside, or from the outside. They sum to 2, so that
        effects can also be ordered by the larger one. Values without spread are taken as certain, as is a single seed.

        >>> inside, outside = Effect("a - b", (3.0, 4.0, 5.0)).p_values
        >>> round(inside, 3), round(outside, 3)
        (0.02, 1.98)
        """
        from scipy.special import stdtr  # Student's t, and a hundred times as fast as scipy.stats

        if isnan(self.margin):
            return 1.0, 1.0
        count = len(self.values)
        error = stdev(self.values) / sqrt(count) if count > 1 else 0.0
        if not error:
            return (0.0, 2.0) if self.margin > 0 else (2.0, 0.0)
        inside = 2 * float(stdtr(count - 1, -self.margin / error))
        return inside, 2 - inside

    @property
    def verdict(self) -> Verdict:
        """Whether the interval lies in the range; with a single seed, whether the value does (an indication only)."""
        found = self.estimate
        low, high = (found.mean, found.mean) if found.count == 1 else (found.low, found.high)
        if self.low < low and high < self.high:
            return Verdict.HOLDS
        return Verdict.FAILS if high <= self.low or low >= self.high else Verdict.UNCLEAR

    @property
    def wanted(self) -> str:
        """The range as text.

        >>> Effect("", (0.0,), -1, 1).wanted, Effect("", (0.0,), 50).wanted, Effect("", (0.0,), -inf, 0.25).wanted
        ('-1 to 1', '> 50', '< 0.25')
        """
        if self.beside:
            return "beside"
        if self.high == inf:
            return f"> {self.low:g}"
        return f"< {self.high:g}" if self.low == -inf else f"{self.low:g} to {self.high:g}"


def joint_verdict(effects: Iterable[Effect]) -> Verdict:
    """Return the verdict on a claim about several effects: the least clear one; not applicable if none counts.

    That all must hold needs no correction for their number (an intersection-union test).

    >>> joint_verdict([Effect("sure", (3.0, 4.0, 5.0)), Effect("unsure", (1.0, 5.0, 9.0))]).value
    'not enough evidence'
    """
    found = [effect.verdict for effect in effects if not effect.beside]
    return min(found, key=CLEARER.index) if found else Verdict.NOT_APPLICABLE
