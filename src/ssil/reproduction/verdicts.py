"""Verdicts on claims: whether an effect lies in its range, given its values for a few seeds."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from math import inf

from ssil.benchmark.results import Estimate, estimate


class Verdict(StrEnum):
    """The result of checking a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNCLEAR = "not enough evidence"
    NOT_RUN = "not run"


CLEARER = (Verdict.FAILS, Verdict.UNCLEAR, Verdict.HOLDS)
"""Verdicts by how well they support a claim."""


@dataclass(frozen=True)
class Effect:
    """A number that a claim is about: a value per seed, and the range in which it supports the claim.

    >>> Effect("a - b", (1.0, 2.0, 3.0)).verdict, Effect("a - b", (3.0, 4.0, 5.0)).verdict
    (<Verdict.UNCLEAR: 'not enough evidence'>, <Verdict.HOLDS: 'holds'>)
    """

    what: str
    values: tuple[float, ...]
    low: float = 0.0
    high: float = inf

    @property
    def estimate(self) -> Estimate:
        """Mean over seeds, with its 95 % interval."""
        return estimate(self.values)

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
        if self.high == inf:
            return f"> {self.low:g}"
        return f"< {self.high:g}" if self.low == -inf else f"{self.low:g} to {self.high:g}"


def _support(effect: Effect) -> tuple[int, float]:
    """Return a key that sorts effects by their verdict, then by their mean."""
    return CLEARER.index(effect.verdict), effect.estimate.mean


def weakest(effects: Iterable[Effect]) -> Effect:
    """Return the effect that supports its claim least; a claim about all effects is decided by this one.

    A wide interval counts more than a small mean:

    >>> weakest([Effect("sure", (3.0, 4.0, 5.0)), Effect("unsure", (1.0, 5.0, 9.0))]).what
    'unsure'
    """
    return min(effects, key=_support)


def strongest(effects: Iterable[Effect]) -> Effect:
    """Return the effect that supports its claim best; a claim about some effect is decided by this one."""
    return max(effects, key=_support)
