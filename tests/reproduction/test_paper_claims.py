"""Verdicts on simulated runs: a world in which every claim holds, and for each claim one in which it does not."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from simulated_evidence import WORLD, Facts, SimulatedEvidence
from ssil.benchmark.results import Run
from ssil.cli.claims import QUICK, _numbers
from ssil.reproduction.paper_claims import CLAIMS, Claim, check
from ssil.reproduction.paper_scenarios import HIGH, LOW, MIDDLE, Condition
from ssil.reproduction.presets import find_preset
from ssil.reproduction.rows import BRANCH
from ssil.reproduction.verdicts import Verdict


def verdicts(claim: Claim, world: Mapping[str, Facts], seeds: int = 3) -> set[Verdict]:
    evidence = SimulatedEvidence(Path(), find_preset("glyphs"), tuple(range(seeds)), world)
    return {finding.verdict for finding in check(claim, evidence)}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: str(claim.number))
@pytest.mark.parametrize("seeds", [1, 3])
def test_every_claim_holds_where_all_is_as_the_paper_says(claim: Claim, seeds: int) -> None:
    assert verdicts(claim, WORLD, seeds) == {Verdict.HOLDS}


FALSE: dict[int, dict[str, Facts]] = {
    1: {"UW": Facts(fall=1.0)},
    2: {"SS-IL": Facts(on_newest=0.6)},
    3: {"CE+GKD": Facts(latest=0.4)},
    4: {"CE+TKD": Facts(fall=5.0)},
    5: {BRANCH: Facts(first=79.0)},
    6: {"CE+TKD (replay)": Facts(fall=2.2)},
    7: {"CE-SS": Facts(fall=1.9)},
    8: {"CE": Facts(gap=0.1, gap_rise=0.0)},
    9: {"SS-IL without ER": Facts(fall=2.5)},
    10: {"BiC": Facts(a_level=0.1)},
    11: {"PODNet": Facts(growing=-0.1)},
    12: {"LUCIR": Facts(large_base=14.0)},
    13: {"CE+TKD (replay)": Facts(fall=4.6)},
    14: {"CE+TKD (replay)": Facts(on_newest=0.3)},
    15: {"CE": Facts(gap_rise=-0.05)},
    16: {"EEIL": Facts(a_level=15.0)},
    17: {"SS-IL": Facts(growing=-2.0)},
    18: {"iCaRL": Facts(first=81.0)},
    19: {"EEIL": Facts(fall=2.0)},
    20: {"CE+TKD": Facts(fall=4.5)},
}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: str(claim.number))
@pytest.mark.parametrize("seeds", [1, 3])
def test_a_claim_fails_where_its_number_lies_outside(claim: Claim, seeds: int) -> None:
    assert verdicts(claim, WORLD | FALSE[claim.number], seeds) == {Verdict.FAILS}


OURS = {"SS-IL", "CE+TKD", BRANCH, "CE-SS"}
"""The lines that are to be ahead."""


@pytest.mark.parametrize("number", [1, 4, 5, 6, 12])
def test_seeds_that_differ_much_are_not_enough(number: int) -> None:
    """The lines that are to be ahead are so with every seed, but now by little, now by far."""
    wild = {line: replace(facts, seed=40.0 if line in OURS else -40.0) for line, facts in WORLD.items()}
    assert verdicts(CLAIMS[number - 1], wild) == {Verdict.UNCLEAR}


def test_a_rival_that_is_far_behind_but_not_surely() -> None:
    """Not only the best rival counts."""
    wide = WORLD | {"UW": Facts(fall=6.0, seed=8.0)}
    assert verdicts(CLAIMS[0], wide) == {Verdict.UNCLEAR}
    assert verdicts(CLAIMS[0], WORLD | {"UW": Facts(fall=6.0)}) == {Verdict.HOLDS}


def test_a_deficit_that_shrinks_is_no_gap_that_widens() -> None:
    behind = WORLD | {"SS-IL": replace(WORLD["SS-IL"], first=50.0)}
    assert verdicts(CLAIMS[14], behind) == {Verdict.FAILS}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: str(claim.number))
def test_a_claim_without_its_runs_is_not_run(claim: Claim) -> None:
    assert verdicts(claim, {}) == {Verdict.NOT_RUN}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: str(claim.number))
def test_a_claim_asks_for_every_run_it_looks_at(claim: Claim) -> None:
    asked: set[tuple[Condition, str]] = set()

    class Recorded(SimulatedEvidence):
        def runs(self, condition: Condition, line: str) -> list[Run]:
            asked.add((condition, line))
            return super().runs(condition, line)

        def has(self, condition: Condition, line: str) -> bool:
            return (condition, line) in {(need.condition, need.line) for need in claim.needs}

    check(claim, Recorded(Path(), find_preset("glyphs"), (0,), WORLD))
    assert asked == {(need.condition, need.line) for need in claim.needs}


def test_the_core_claims_need_no_other_memory_or_stream() -> None:
    core = _numbers(QUICK)
    assert {need.condition for claim in CLAIMS if claim.number in core for need in claim.needs} == {Condition()}
    levels = {need.condition.level for claim in CLAIMS for need in claim.needs}
    assert levels == {LOW, MIDDLE, HIGH}
