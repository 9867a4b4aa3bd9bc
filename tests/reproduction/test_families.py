"""Verdicts on families of comparisons, against Holm's procedure written out, and by how often chance misleads them."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from ssil.reproduction.families import Family, Part, every, some
from ssil.reproduction.verdicts import Effect, Verdict

KINDS: list[Callable[[Iterable[Part]], Family]] = [every, some]


def rejected(p_values: Sequence[float]) -> list[bool]:
    """Holm's procedure, step by step: go through the p-values from the least on, and stop at the first too large."""
    found = [False] * len(p_values)
    for step, place in enumerate(sorted(range(len(p_values)), key=lambda place: p_values[place])):
        if p_values[place] >= 0.05 / (len(p_values) - step):
            break
        found[place] = True
    return found


def literal(kind: Callable[..., Family], samples: Sequence[Sequence[float]]) -> Verdict:
    """The verdict by two-sided t-tests of a mean of 0, in either direction."""
    above, below = [], []
    for values in samples:
        p = float(ttest_1samp(values, 0.0).pvalue)
        positive = np.mean(values) > 0
        above.append(p if positive else 1.0)
        below.append(1.0 if positive else p)
    needed, enough = (all, any) if kind is every else (any, all)
    if needed(rejected(above)):
        return Verdict.HOLDS
    return Verdict.FAILS if enough(rejected(below)) else Verdict.UNCLEAR


@pytest.mark.parametrize("kind", KINDS)
def test_a_family_is_judged_by_holm_s_procedure(kind: Callable[..., Family]) -> None:
    random = np.random.default_rng(0)
    verdicts = set()
    for _ in range(300):
        size = random.integers(1, 8)
        samples = random.normal(random.choice([-8, -1, 0, 2, 8], (size, 1)) * random.choice([0.3, 1]), 0.4, (size, 3))
        family = kind(Effect("", tuple(map(float, values))) for values in samples)
        assert family.verdict == literal(kind, samples.tolist())
        assert family.effect.verdict == family.verdict  # the interval that is shown tells the same
        verdicts.add(family.verdict)
    assert verdicts == {Verdict.HOLDS, Verdict.FAILS, Verdict.UNCLEAR}


def test_the_shown_interval_tells_the_verdict_on_nested_families() -> None:
    random = np.random.default_rng(1)
    verdicts = set()
    for _ in range(300):
        means = random.choice([-9, 0, 3, 9], (3, 1)) + random.choice([0, 20], (3, 4))
        samples = random.normal(means[..., None], 0.3, (3, 4, 3))
        family = every(some(Effect("", tuple(map(float, values))) for values in part) for part in samples)
        assert family.effect.verdict == family.verdict
        verdicts.add(family.verdict)
    assert Verdict.HOLDS in verdicts
    assert Verdict.FAILS in verdicts


def test_a_single_seed_counts_by_its_value() -> None:
    leads = [Effect("far", (9.0,)), Effect("near", (1.0,)), Effect("behind", (-2.0,)), Effect("last", (-3.0,))]
    assert (every(leads[:2]).verdict, every(leads[:2]).effect.what) == (Verdict.HOLDS, "near")
    assert (every(leads).verdict, every(leads).effect.what) == (Verdict.FAILS, "last")
    assert (some(leads).verdict, some(leads).effect.what) == (Verdict.HOLDS, "far")
    assert (some(leads[2:]).verdict, some(leads[2:]).effect.what) == (Verdict.FAILS, "behind")


@pytest.mark.parametrize("nested", [False, True])
def test_chance_alone_seldom_gives_a_verdict(nested: bool) -> None:
    """Of 12 comparisons without any difference, one is far out in every fourth draw; corrected, at most in 5 %."""
    random, draws, misled, uncorrected = np.random.default_rng(2), 400, 0, 0
    for _ in range(draws):
        effects = [Effect("", tuple(map(float, values))) for values in random.normal(0, 1, (12, 3))]
        family = every(some(effects[first : first + 4]) for first in (0, 4, 8)) if nested else every(effects)
        misled += family.verdict != Verdict.UNCLEAR
        uncorrected += any(effect.verdict == Verdict.FAILS for effect in effects)
    assert uncorrected / draws > 0.2
    assert misled / draws < 0.05
