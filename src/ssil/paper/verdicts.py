"""From effects to verdicts: what a few seeds allow to say of a claim."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf

from ssil.statistics import Estimate, estimate


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


def together(effects: Sequence[Effect]) -> Verdict:
    """A claim holds if all of its effects do, and fails if one does."""
    verdicts = {effect.verdict for effect in effects}
    return next((verdict for verdict in (Verdict.FAILS, Verdict.UNCLEAR) if verdict in verdicts), Verdict.HOLDS)
