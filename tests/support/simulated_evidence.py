"""Simulated runs of the paper's lines: by default, a world in which every claim of the paper holds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from ssil.benchmark.record import Record, TaskRecord, summarise
from ssil.benchmark.results import Run
from ssil.reproduction.evidence import Evidence, MissingError
from ssil.reproduction.paper_scenarios import MIDDLE, Condition
from ssil.reproduction.rows import LINES

TASKS = 10


@dataclass(frozen=True)
class Facts:
    """The results of one line: accuracy after task 1, its fall per task, and the effects of memory and stream on it.

    `on_newest` is the share of old images, `recalled` that of the newest task's, that are taken for the newest task.
    `second` are the facts at t = 2, if they are others.
    """

    first: float = 80.0
    fall: float = 4.0
    a_level: float = 3.0
    growing: float = -5.0
    large_base: float = 0.0
    on_newest: float = 0.7
    recalled: float = 1.0
    softmax_ratio: float = 4.0
    latest: float = 0.7
    gap: float = 1.0
    gap_rise: float = 0.2
    seed: float = 0.02
    epochs: int = 100
    second: "Facts | None" = None


BALANCED: dict[str, Any] = {"on_newest": 0.05, "softmax_ratio": 1.2, "gap": 0.1, "gap_rise": 0.0}
"""What a separated softmax brings about."""

WORLD: dict[str, Facts] = {
    **dict.fromkeys(LINES, Facts()),
    "SS-IL": Facts(fall=2.0, a_level=0.2, growing=-0.5, **BALANCED),
    "EEIL": Facts(first=75.0, fall=2.6, epochs=40),
    "iCaRL": Facts(first=76.0),
    "LUCIR": Facts(fall=3.8, large_base=6.0),
    "CE+GKD": Facts(fall=4.4),
    "CE": Facts(fall=4.5),
    "CE-SS": Facts(fall=2.5, **BALANCED),
    "SS-IL without ER": Facts(fall=2.05, a_level=0.2),
    "SS-IL, N_M = 16": Facts(fall=1.95, a_level=0.2),
    "SS-IL, N_M = 64": Facts(fall=2.02, a_level=0.2),
}


def _confusion(t: int, facts: Facts) -> list[list[int]]:
    on_newest = [round(100 * (facts.recalled if s == t - 1 else facts.on_newest)) for s in range(t)]
    return [[100 - count, *[0] * (t - 2), count] for count in on_newest] if t > 1 else [[100]]


def _task(t: int, facts: Facts, accuracy: float, classes: int) -> TaskRecord:
    if t == 2 and facts.second:
        facts = facts.second
    seen: dict[str, Any] = {
        "task": t,
        "classes_seen": classes * t,
        "top1": accuracy,
        "top5": accuracy + 10,
        "task_top1": [accuracy] * t,
        "confusion": _confusion(t, facts),
        "softmax_old": 0.01 if t > 1 else None,
        "softmax_new": 0.01 * facts.softmax_ratio,
        "loss": {"main": {"ce": [1.0] * facts.epochs}},
        "teacher_ratio": [*[(1 - facts.latest) / (t - 2)] * (t - 2), facts.latest] if t > 2 else None,
        "score_gap": facts.gap + facts.gap_rise * t if t > 1 else None,
        "seconds": 1.0,
        "seconds_by_phase": {"main": 0.5},
        "images_seen": 100,
    }
    unseen: dict[str, Any] = dict.fromkeys(TaskRecord.model_fields)
    return TaskRecord.model_construct(**unseen | seen)


@cache
def _run(condition: Condition, facts: Facts, seed: int, classes: int) -> Run:
    shift = facts.a_level * (condition.level - MIDDLE) + facts.growing * condition.growing
    shift += facts.large_base * condition.large_base + facts.seed * seed
    tasks = [
        _task(t, facts, facts.first - facts.fall * (t - 1) + (shift if t > 1 else 0), classes)
        for t in range(1, TASKS + 1)
    ]
    unseen: dict[str, Any] = dict.fromkeys(Record.model_fields)
    seen = {"tasks": tasks, "summary": summarise(tasks), "config": {"training": {"epochs": facts.epochs}}}
    return Run(Path(), Record.model_construct(**unseen | seen))


@dataclass(frozen=True, eq=False)
class SimulatedEvidence(Evidence):
    """Runs computed from `world`, the facts of each line."""

    world: Mapping[str, Facts] = field(default_factory=dict)
    classes: int = 100
    """In each task."""

    __hash__ = object.__hash__

    def runs(self, condition: Condition, line: str) -> list[Run]:
        """Return one run per seed."""
        if line not in self.world:
            raise MissingError(line)
        return [_run(condition, self.world[line], seed, self.classes) for seed in self.seeds]
