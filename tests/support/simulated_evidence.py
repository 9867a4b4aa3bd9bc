"""Simulated runs of the paper's lines: by default, a world in which every claim of the paper holds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    """The results of one line: accuracy after task 1, its fall per task, and the effects of memory and stream on it."""

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
        "seconds_by_phase": {"main": 0.5},
        "images_seen": 100,
    }
    unseen: dict[str, Any] = dict.fromkeys(TaskRecord.model_fields)
    return TaskRecord.model_construct(**unseen | seen)


@dataclass(frozen=True, eq=False)
class SimulatedEvidence(Evidence):
    """Runs computed from `world`, the facts of each line."""

    world: Mapping[str, Facts] = field(default_factory=dict)

    __hash__ = object.__hash__

    def runs(self, condition: Condition, line: str) -> list[Run]:
        """Return one run per seed."""
        if line not in self.world:
            raise MissingError(line)
        return [self._run_of(condition, self.world[line], seed) for seed in self.seeds]

    def _run_of(self, condition: Condition, facts: Facts, seed: int) -> Run:
        shift = facts.a_level * (condition.level - MIDDLE) + facts.growing * condition.growing
        shift += facts.large_base * condition.large_base + facts.seed * seed
        tasks = [
            _task(t, facts, facts.first - facts.fall * (t - 1) + (shift if t > 1 else 0)) for t in range(1, TASKS + 1)
        ]
        unseen: dict[str, Any] = dict.fromkeys(Record.model_fields)
        return Run(Path(), Record.model_construct(**unseen | {"tasks": tasks, "summary": summarise(tasks)}))
