"""From effects to verdicts: what a few seeds allow to say of a claim."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from math import inf

from ssil.benchmark.estimates import Estimate, estimate


class Verdict(StrEnum):
    """What is said of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNCLEAR = "not enough evidence"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Effect:
    """A number that a claim is about, by seed, and the range in which it bears the claim out.

    >>> Effect("a - b", (1.0, 2.0, 3.0)).verdict, Effect("a - b", (3.0, 4.0, 5.0)).verdict
    (<Verdict.UNCLEAR: 'not enough evidence'>, <Verdict.HOLDS: 'holds'>)
    """

    what: str
    values: tuple[float, ...]
    low: float = 0.0
    high: float = inf

    @property
    def estimate(self) -> Estimate:
        """Mean over the seeds, with the 95 % interval."""
        return estimate(self.values)

    @property
    def verdict(self) -> Verdict:
        """By the interval; of one seed by the number itself, which is only an indication."""
        found = self.estimate
        low, high = (found.mean, found.mean) if found.count == 1 else (found.low, found.high)
        if self.low < low and high < self.high:
            return Verdict.HOLDS
        return Verdict.FAILS if high <= self.low or low >= self.high else Verdict.UNCLEAR

    @property
    def wanted(self) -> str:
        """The range in words.

        >>> Effect("", (0.0,), -1, 1).wanted, Effect("", (0.0,), 50).wanted, Effect("", (0.0,), -inf, 0.25).wanted
        ('-1 to 1', '> 50', '< 0.25')
        """
        if self.high == inf:
            return f"> {self.low:g}"
        return f"< {self.high:g}" if self.low == -inf else f"{self.low:g} to {self.high:g}"


RISING = (Verdict.FAILS, Verdict.UNCLEAR, Verdict.HOLDS)


def clarity(effect: Effect) -> tuple[int, float]:
    """How clearly an effect that is to be large bears its claim out: by its verdict, then by its mean."""
    return RISING.index(effect.verdict), effect.estimate.mean


def weakest(effects: Iterable[Effect]) -> Effect:
    """The one that bears its claim out least: what is said of all is said of this one.

    A wide interval counts more than a small mean:

    >>> weakest([Effect("sure", (3.0, 4.0, 5.0)), Effect("unsure", (1.0, 5.0, 9.0))]).what
    'unsure'
    """
    return min(effects, key=clarity)


def strongest(effects: Iterable[Effect]) -> Effect:
    """The one that bears its claim out best: what is said of some is said of this one."""
    return max(effects, key=clarity)


def together(effects: Iterable[Effect]) -> Verdict:
    """A claim holds if all of its effects do, and fails if one does."""
    return weakest(effects).verdict
