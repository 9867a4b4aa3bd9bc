"""Families of k comparisons, "best of k" or "beaten by one of k": verdicts corrected for k by Holm's procedure.

Of k comparisons some are far out by chance, so each must be clearer than one that stands alone (Holm, Scandinavian
Journal of Statistics 1979). With the p-values in increasing order, all k are shown if the i-th is at most
alpha / (k - i + 1) for every i, and at least one is shown if the first is at most alpha / k. Both are asked for lying
inside the range and for lying outside, so a claim is as hard to refute as to support.

Where all must hold, an intersection-union test would need no correction. The stricter rule is kept, so that each single
comparison of a family that holds may be quoted.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ssil.reproduction.verdicts import ALPHA, Effect, Verdict


class Decision(NamedTuple):
    """The comparison that decides, its p-value times Holm's factor, and the factor."""

    p: float
    factor: int
    effect: Effect


@dataclass(frozen=True)
class Family:
    """The deciding comparisons for lying inside and outside the range, and how many there are to correct for."""

    inside: Decision
    outside: Decision
    size: int

    @property
    def verdict(self) -> Verdict:
        """The verdict on all comparisons together."""
        if self.inside.p < ALPHA:
            return Verdict.HOLDS
        return Verdict.FAILS if self.outside.p < ALPHA else Verdict.UNCLEAR

    @property
    def effect(self) -> Effect:
        """The comparison that decides, with an interval corrected so that its own verdict is the family's."""
        deciding = {Verdict.HOLDS: self.inside, Verdict.FAILS: self.outside}
        _, factor, effect = deciding.get(self.verdict, self.inside._replace(factor=self.size))
        return replace(effect, comparisons=factor)


Part = Effect | Family


def every(parts: Iterable[Part]) -> Family:
    """Return the family that holds if all parts do, and fails if one does.

    >>> leads = [Effect("a - b", (3.0, 4.0, 5.0)), Effect("a - c", (1.0, 2.0, 3.0))]
    >>> every(leads).verdict.value, every(leads[:1] * 7).verdict.value, every(leads[:1] * 7).effect.comparisons
    ('not enough evidence', 'not enough evidence', 7)
    """
    families = [_family(part) for part in parts]
    inside = _all([family.inside for family in families], shown=-1)
    return Family(inside, _any([family.outside for family in families], shown=-1), _size(families))


def some(parts: Iterable[Part]) -> Family:
    """Return the family that holds if at least one part does, and fails if all do.

    >>> some([Effect("a - b", (30.0, 31.0, 32.0)), Effect("a - c", (-3.0, -2.0, -1.0))]).effect.what
    'a - b'
    """
    families = [_family(part) for part in parts]
    inside = _any([family.inside for family in families], shown=1)
    return Family(inside, _all([family.outside for family in families], shown=1), _size(families))


def _family(part: Part) -> Family:
    if isinstance(part, Family):
        return part
    inside, outside = part.p_values
    return Family(Decision(inside, 1, part), Decision(outside, 1, part), 1)


def _size(families: Sequence[Family]) -> int:
    return len(families) * max(family.size for family in families)


def _any(tests: Sequence[Decision], shown: int) -> Decision:
    """Return the clearest test, corrected for their number; of equal ones that of largest (1) or least (-1) margin."""
    found = min(tests, key=lambda test: (test.p, -shown * test.effect.margin))
    return Decision(len(tests) * found.p, len(tests) * found.factor, found.effect)


def _all(tests: Sequence[Decision], shown: int) -> Decision:
    """Return the test that is least clear for its place in Holm's order; of equal ones as in `_any`."""
    factors = range(len(tests), 0, -1)
    ordered = zip(factors, sorted(tests, key=lambda test: test.p), strict=True)
    corrected = [Decision(factor * test.p, factor * test.factor, test.effect) for factor, test in ordered]
    return max(corrected, key=lambda test: (min(1.0, test.p), shown * test.effect.margin))
