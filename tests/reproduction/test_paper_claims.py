"""The verdicts on made-up runs: a world in which every claim holds, and for each claim one in which it does not."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from ssil.benchmark.record import Record, TaskRecord, summarise
from ssil.benchmark.results import Run
from ssil.cli.claims import QUICK, _numbers
from ssil.reproduction.evidence import Evidence, MissingError
from ssil.reproduction.paper_claims import CLAIMS, Claim, check
from ssil.reproduction.paper_scenarios import HIGH, LOW, MIDDLE, Condition
from ssil.reproduction.presets import find_preset
from ssil.reproduction.rows import BRANCH, LINES
from ssil.reproduction.verdicts import Verdict

TASKS = 10


@dataclass(frozen=True)
class Facts:
    """What one line of a table is like: accuracy after task 1, its fall a task, what memory and streams do to it."""

    first: float = 80.0
    fall: float = 4.0
    a_level: float = 3.0
    growing: float = -5.0
    large_base: float = 0.0
    on_newest: float = 0.7
    latest: float = 0.7
    gap: float = 1.0
    gap_rise: float = 0.2
    seed: float = 0.02


WORLD: dict[str, Facts] = {
    **dict.fromkeys(LINES, Facts()),
    "SS-IL": Facts(fall=2.0, a_level=0.2, growing=-0.5, on_newest=0.2, gap=0.1, gap_rise=0.0),
    "EEIL": Facts(first=75.0, fall=2.6),
    "iCaRL": Facts(first=76.0),
    "LUCIR": Facts(fall=3.8, large_base=6.0),
    "CE+GKD": Facts(fall=4.4),
    "CE": Facts(fall=4.5),
    "CE-SS": Facts(fall=2.5, on_newest=0.2, gap=0.1, gap_rise=0.0),
    "SS-IL without ER": Facts(fall=2.05, a_level=0.2),
    "SS-IL, N_M = 16": Facts(fall=1.95, a_level=0.2),
    "SS-IL, N_M = 64": Facts(fall=2.02, a_level=0.2),
}


def _task(t: int, facts: Facts, accuracy: float) -> TaskRecord:
    newest = round(100 * facts.on_newest)
    confusion = [[0] * (t - 1) + [100] if s == t - 1 else [100 - newest, *[0] * (t - 2), newest] for s in range(t)]
    seen: dict[str, Any] = {
        "task": t,
        "top1": accuracy,
        "top5": accuracy + 10,
        "task_top1": [accuracy] * t,
        "confusion": confusion,
        "teacher_ratio": [*[(1 - facts.latest) / (t - 2)] * (t - 2), facts.latest] if t > 2 else None,
        "score_gap": facts.gap + facts.gap_rise * t if t > 1 else None,
        "seconds": 1.0,
    }
    unseen: dict[str, Any] = dict.fromkeys(TaskRecord.model_fields)
    return TaskRecord.model_construct(**unseen | seen)


@dataclass(frozen=True, eq=False)
class MadeUp(Evidence):
    """Runs as the facts have them."""

    world: Mapping[str, Facts] = field(default_factory=dict)

    __hash__ = object.__hash__

    def runs(self, condition: Condition, line: str) -> list[Run]:
        if line not in self.world:
            raise MissingError(line)
        return [self._made(condition, self.world[line], seed) for seed in self.seeds]

    def _made(self, condition: Condition, facts: Facts, seed: int) -> Run:
        shift = facts.a_level * (condition.level - MIDDLE) + facts.growing * condition.growing
        shift += facts.large_base * condition.large_base + facts.seed * seed
        tasks = [
            _task(t, facts, facts.first - facts.fall * (t - 1) + (shift if t > 1 else 0)) for t in range(1, TASKS + 1)
        ]
        unseen: dict[str, Any] = dict.fromkeys(Record.model_fields)
        return Run(Path(), Record.model_construct(**unseen | {"tasks": tasks, "summary": summarise(tasks)}))


def verdicts(claim: Claim, world: Mapping[str, Facts], seeds: int = 3) -> set[Verdict]:
    evidence = MadeUp(Path(), find_preset("glyphs"), tuple(range(seeds)), world)
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


def test_joint_training_alone_makes_no_column() -> None:
    lines = ("SS-IL", "Joint")
    for there, expected in ((("Joint",), False), (lines, True)):
        evidence = MadeUp(Path(), find_preset("glyphs"), (0,), {line: Facts() for line in there})
        assert evidence.has_any(Condition(), lines) is expected


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: str(claim.number))
def test_a_claim_without_its_runs_is_not_run(claim: Claim) -> None:
    assert verdicts(claim, {}) == {Verdict.NOT_RUN}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: str(claim.number))
def test_a_claim_asks_for_every_run_it_looks_at(claim: Claim) -> None:
    asked: set[tuple[Condition, str]] = set()

    class Watched(MadeUp):
        def runs(self, condition: Condition, line: str) -> list[Run]:
            asked.add((condition, line))
            return super().runs(condition, line)

        def has(self, condition: Condition, line: str) -> bool:
            return (condition, line) in {(need.condition, need.line) for need in claim.needs}

    check(claim, Watched(Path(), find_preset("glyphs"), (0,), WORLD))
    assert asked == {(need.condition, need.line) for need in claim.needs}


def test_the_core_claims_need_no_other_memory_or_stream() -> None:
    core = _numbers(QUICK)
    assert {need.condition for claim in CLAIMS if claim.number in core for need in claim.needs} == {Condition()}
    levels = {need.condition.level for claim in CLAIMS for need in claim.needs}
    assert levels == {LOW, MIDDLE, HIGH}
