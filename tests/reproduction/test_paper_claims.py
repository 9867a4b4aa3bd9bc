"""Verdicts on simulated runs: a world in which every claim holds, and for each claim one in which it does not."""

from collections.abc import Mapping
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import pytest

from simulated_evidence import WORLD, Facts, SimulatedEvidence
from ssil.benchmark.record import Record, Summary
from ssil.benchmark.results import Run
from ssil.cli.claims import COUNT, QUICK, claim_numbers
from ssil.reproduction.effects import RIVALS
from ssil.reproduction.evidence import MissingError
from ssil.reproduction.paper_claims import CLAIMS, Claim, Finding, check
from ssil.reproduction.paper_scenarios import HIGH, LOW, MIDDLE, Condition
from ssil.reproduction.presets import find_preset
from ssil.reproduction.published import published
from ssil.reproduction.rows import BRANCH, UNCOMPARED
from ssil.reproduction.verdicts import Effect, Verdict

PRESET = find_preset("glyphs")


def finding(number: int, world: Mapping[str, Facts], seeds: int = 3) -> Finding:
    """The finding on a claim, top-1."""
    return check(CLAIMS[number - 1], SimulatedEvidence(Path(), PRESET, tuple(range(seeds)), world))[0]


def verdicts(claim: Claim, world: Mapping[str, Facts], seeds: int = 3) -> set[Verdict]:
    evidence = SimulatedEvidence(Path(), PRESET, tuple(range(seeds)), world)
    return {finding.verdict for finding in check(claim, evidence)}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: str(claim.number))
@pytest.mark.parametrize("seeds", [1, 3])
def test_every_claim_holds_where_all_is_as_the_paper_says(claim: Claim, seeds: int) -> None:
    assert verdicts(claim, WORLD, seeds) == {Verdict.HOLDS}


FALSE: dict[int, dict[str, Facts]] = {
    1: {"PODNet": Facts(fall=1.0)},
    2: {"SS-IL": Facts(on_newest=0.6)},
    3: {"CE+GKD": Facts(latest=0.4)},
    4: {"CE+TKD": Facts(fall=5.0)},
    5: {BRANCH: Facts(first=79.0)},
    6: {"CE+TKD (replay)": Facts(fall=2.2)},
    7: {"CE-SS": Facts(fall=1.9)},
    8: {"CE": Facts(gap=-1.0, gap_rise=0.0)},
    9: {"SS-IL without ER": Facts(fall=2.5)},
    10: {"BiC": Facts(a_level=0.1)},
    11: {"PODNet": Facts(growing=-0.1)},
    12: {"LUCIR": Facts(large_base=14.0)},
    13: {"CE+TKD (replay)": Facts(fall=4.6)},
    14: {"CE+TKD (replay)": Facts(on_newest=0.3)},
    15: {"CE": Facts(gap_rise=-0.05)},
    16: {"EEIL": Facts(a_level=15.0)},
    17: {"SS-IL": Facts(growing=-3.0)},
    18: {"iCaRL": Facts(first=81.0)},
    19: {"EEIL": Facts(fall=2.0)},
    20: {"CE+TKD": Facts(fall=4.5)},
    21: {"CE-SS": Facts(softmax_ratio=2.5)},
    22: {"SS-IL": Facts(on_newest=0.3)},
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
    wide = WORLD | {"BiC": Facts(fall=6.0, seed=8.0)}
    assert verdicts(CLAIMS[0], wide) == {Verdict.UNCLEAR}
    assert verdicts(CLAIMS[0], WORLD | {"BiC": Facts(fall=6.0)}) == {Verdict.HOLDS}


def test_methods_that_the_paper_does_not_compare_with_stand_beside() -> None:
    better = WORLD | {"UW": Facts(fall=1.0)}
    assert verdicts(CLAIMS[0], better) == {Verdict.HOLDS}
    (shown,) = {effect.wanted for effect in finding(1, better).effects if "UW" in effect.what}
    assert shown == "beside"
    without = {line: facts for line, facts in WORLD.items() if line not in UNCOMPARED}
    assert verdicts(CLAIMS[0], without) == {Verdict.HOLDS}


def test_the_best_method_must_be_so_in_almost_every_condition() -> None:
    """EEIL is ahead where the memory grows, but not in the mean."""
    assert finding(1, WORLD).effects[1].values == (100.0,) * 3  # in all 20 conditions
    ahead = WORLD | {"EEIL": Facts(first=75.0, fall=2.6, growing=10.0)}
    lead, share = finding(1, ahead).effects[:2]
    assert (lead.verdict, share.verdict) == (Verdict.HOLDS, Verdict.FAILS)
    assert verdicts(CLAIMS[0], ahead) == {Verdict.FAILS}


def test_the_mean_over_conditions_is_of_those_that_were_run() -> None:
    ran = {Condition(), Condition(level=HIGH)}

    class Partly(SimulatedEvidence):
        def has(self, condition: Condition, line: str) -> bool:
            return condition in ran and super().has(condition, line)

    (top1, _) = check(CLAIMS[0], Partly(Path(), PRESET, (0,), WORLD))
    lead = 45 * (2.6 - 2.0) / 10 + 5  # EEIL's, which starts 5 points lower
    higher = lead + 9 / 10 * (0.2 - 3.0)  # a larger memory helps EEIL more, from the second task on
    assert list(top1.effects[0].values) == [pytest.approx((lead + higher) / 2)]
    assert "mean of 2 conditions" in top1.effects[0].what


SS = WORLD["SS-IL"]


@pytest.mark.parametrize(
    ("number", "second", "verdict"),
    [
        (8, replace(SS, gap=0.2), Verdict.HOLDS),
        (8, replace(SS, gap=0.3), Verdict.FAILS),
        (8, replace(SS, gap=-0.3), Verdict.FAILS),  # to the old classes
        (21, replace(SS, softmax_ratio=1.9), Verdict.HOLDS),
        (21, replace(SS, softmax_ratio=0.6), Verdict.HOLDS),
        (21, replace(SS, softmax_ratio=2.1), Verdict.FAILS),
        (21, replace(SS, softmax_ratio=0.4), Verdict.FAILS),
        (22, replace(SS, recalled=0.6), Verdict.HOLDS),  # 65 of 200 images, where 100 are fair
        (22, replace(SS, recalled=0.3), Verdict.FAILS),
        (22, replace(SS, on_newest=0.99), Verdict.HOLDS),  # at t = 2 all is no more than twice the fair share
    ],
)
@pytest.mark.parametrize("line", ["SS-IL", "CE-SS"])
def test_a_single_t_decides_what_is_said_of_every_t(number: int, second: Facts, verdict: Verdict, line: str) -> None:
    """Also if all is well again in the end."""
    assert verdicts(CLAIMS[number - 1], WORLD | {line: replace(SS, second=second)}) == {verdict}


@pytest.mark.parametrize("gap", [0.2, -2.0])
def test_without_separation_new_scores_are_above_old_ones_at_every_t(gap: float) -> None:
    """A gap to the other side is no bias to new classes."""
    facts = WORLD["CE+TKD (replay)"]
    second = replace(facts, gap=gap, gap_rise=0.0)
    assert verdicts(CLAIMS[7], WORLD | {"CE+TKD (replay)": replace(facts, second=second)}) == {Verdict.FAILS}


def test_records_without_score_gaps_are_not_enough() -> None:
    """As those of version 1."""
    assert verdicts(CLAIMS[7], WORLD | {"CE-SS": replace(SS, gap=nan)}) == {Verdict.UNCLEAR}


def test_equal_mean_scores_are_not_equal_probabilities() -> None:
    """Sharper scores of the same mean have a gap of 0, a larger softmax, and more than their share of predictions."""
    sharp = WORLD | {"SS-IL": replace(SS, gap=0.0, softmax_ratio=3.0, on_newest=0.4)}
    assert [verdicts(CLAIMS[number - 1], sharp) for number in (8, 21, 22)] == [
        {Verdict.HOLDS},
        {Verdict.FAILS},
        {Verdict.FAILS},
    ]


@pytest.mark.parametrize(("change", "verdict"), [(-1.8, Verdict.HOLDS), (-2.2, Verdict.FAILS), (2.3, Verdict.FAILS)])
def test_no_significant_difference_is_less_than_two_points(change: float, verdict: Verdict) -> None:
    facts = replace(SS, growing=change * 11 / 10)  # all but the first of 11 tasks have the change
    assert verdicts(CLAIMS[16], WORLD | {"SS-IL": facts}) == {verdict}


def test_a_first_task_that_eeil_trains_as_ss_il_does_tells_nothing() -> None:
    alike = WORLD | {"EEIL": replace(WORLD["EEIL"], epochs=100)}
    assert verdicts(CLAIMS[17], alike) == {Verdict.NOT_APPLICABLE}
    assert [effect.wanted for effect in finding(18, alike).effects] == ["beside", "beside"]
    assert verdicts(CLAIMS[17], WORLD | {"EEIL": Facts(first=82.0, epochs=40)}) == {Verdict.FAILS}


def test_of_five_classes_top_5_misses_none() -> None:
    evidence = SimulatedEvidence(Path(), PRESET, (0, 1, 2), WORLD, classes=5)
    assert [one.verdict for one in check(CLAIMS[17], evidence)] == [Verdict.HOLDS, Verdict.NOT_APPLICABLE]


def rival(first: float, spread: float = 0.0) -> Facts:
    """A method that differs from SS-IL in its first accuracy, and by so much from seed to seed in its average."""
    return replace(SS, first=first, seed=SS.seed + spread * 10 / 9)


def test_the_best_of_seven_needs_clearer_evidence_than_one_lead() -> None:
    """A lead of 5, 6 and 7 points is clear by itself; as one of seven of the kind it is not."""
    found = finding(1, WORLD | dict.fromkeys(RIVALS, rival(75.0, -1.0)))
    assert Effect("", found.effects[0].values).verdict == Verdict.HOLDS
    assert found.effects[0].verdict == found.verdict == Verdict.UNCLEAR
    assert verdicts(CLAIMS[0], WORLD | {"BiC": rival(75.0, -1.0)}) == {Verdict.HOLDS}  # Holm's last step
    assert verdicts(CLAIMS[0], WORLD | dict.fromkeys(RIVALS, rival(75.0, -0.1))) == {Verdict.HOLDS}


def test_being_behind_one_of_seven_needs_clearer_evidence_too() -> None:
    """Behind by 3, 4 and 5 points is a clear deficit to one rival, not to the worst of seven."""
    lead, _, *_ = finding(1, WORLD | {"BiC": rival(83.0, 1.0)}).effects
    assert list(lead.values) == pytest.approx([-3, -4, -5])
    assert Effect("", lead.values).verdict == Verdict.FAILS
    assert lead.verdict == Verdict.UNCLEAR
    clear, _, *_ = finding(1, WORLD | {"BiC": rival(83.0, 0.1)}).effects
    assert clear.verdict == Verdict.FAILS


@pytest.mark.parametrize(("spread", "verdict"), [(1.0, Verdict.UNCLEAR), (0.1, Verdict.HOLDS)])
def test_one_win_of_many_comparisons_must_be_clear(spread: float, verdict: Verdict) -> None:
    """EEIL is the best baseline, but for a memory that grows, where BiC is ahead by 2 to 6 points with five seeds."""
    eeil = replace(SS, first=79.0)
    bic = replace(eeil, first=39.0, growing=42 * 10 / 9 + SS.growing, seed=SS.seed + spread * 10 / 9)
    found = finding(19, WORLD | {"EEIL": eeil, "BiC": bic, "LUCIR": Facts()}, seeds=5)
    assert found.effects[0].what.startswith("BiC - EEIL")
    assert Effect("", found.effects[0].values).verdict == Verdict.HOLDS
    assert found.verdict == verdict


class Published(SimulatedEvidence):
    """The averages that the paper prints for ImageNet, as runs of one seed."""

    def runs(self, condition: Condition, line: str) -> list[Run]:
        printed = published().get(("imagenet", condition, line))
        if not printed:
            raise MissingError(line)
        empty: dict[str, Any] = dict.fromkeys(Summary.model_fields)
        averages = {"average_top1": printed.top1, "average_top5": printed.top5}
        summary = Summary.model_construct(**empty | averages)
        unseen: dict[str, Any] = dict.fromkeys(Record.model_fields)
        return [Run(Path(), Record.model_construct(**unseen | {"summary": summary}))]


@pytest.mark.parametrize("number", [1, 10, 11, 12, 16, 17, 19])
def test_a_rule_about_averages_holds_in_the_paper_s_own_tables(number: int) -> None:
    found = check(CLAIMS[number - 1], Published(Path(), find_preset("imagenet"), (0,)))
    assert [one.verdict for one in found] == [Verdict.HOLDS] * 2


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

    check(claim, Recorded(Path(), PRESET, (0,), WORLD))
    assert asked == {(need.condition, need.line) for need in claim.needs}


def test_the_core_claims_need_no_other_memory_or_stream() -> None:
    core = claim_numbers(QUICK)
    assert {need.condition for claim in CLAIMS if claim.number in core for need in claim.needs} == {Condition()}
    levels = {need.condition.level for claim in CLAIMS for need in claim.needs}
    assert levels == {LOW, MIDDLE, HIGH}


def test_the_claims_are_numbered_and_short() -> None:
    """A line of 100 columns has room for 54 letters beside two verdicts."""
    assert [claim.number for claim in CLAIMS] == list(range(1, COUNT + 1))
    assert max(len(claim.text) for claim in CLAIMS) <= 54
