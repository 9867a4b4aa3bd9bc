"""The paper's 60 scenarios: 4 settings x 3 data sets x 5 conditions."""

from dataclasses import dataclass
from functools import cache
from itertools import product

from ssil.core.errors import UserError, did_you_mean
from ssil.reproduction.conditions import Condition, setting

DATASETS = {
    "imagenet": (1_000, (5, 10, 20)),
    "landmark-v2-1k": (1_000, (5, 10, 20)),
    "landmark-v2-10k": (10_000, (2, 4, 6)),
}
"""Classes, and the three sizes of memory as exemplars per class: all along if it grows, in the end if it is fixed."""

REPLAY_BATCH = {20: 16, 10: 32, 5: 64}
"""Exemplars in a batch by T. The paper is silent on large bases: the same rule."""


@dataclass(frozen=True)
class PaperScenario:
    """A stream with its memory: either `memory` (a fixed total) or `memory_per_class` (growing) is given.

    `tasks` is the paper's T: a large base brings half of the classes in a task of its own before them.
    """

    number: int
    name: str
    dataset: str
    classes: int
    tasks: int
    large_base: bool
    memory: int | None
    memory_per_class: int | None
    replay_batch: int
    in_tables: bool


@cache
def scenarios() -> tuple[PaperScenario, ...]:
    """All 60, by number."""
    settings = product((False, True), (False, True), DATASETS)
    grid = [(data, condition) for large, growing, data in settings for condition in setting(growing, large)]
    return tuple(_scenario(number, *cell) for number, cell in enumerate(grid, start=1))


def find(key: str | int) -> PaperScenario:
    """A scenario by its name or its number.

    >>> find("landmark-v2-10k-largebase-growing-t20-4").number, find(2).name
    (59, 'imagenet-base-fixed-t10-10k')
    """
    known = {name: scenario for scenario in scenarios() for name in (scenario.name, str(scenario.number))}
    if str(key) in known:
        return known[str(key)]
    names = [scenario.name for scenario in scenarios()]
    hint = did_you_mean(str(key), names, f"for example {names[0]}", count=3)
    raise UserError(f"scenario: {key!r} is none of the paper's; give a number from 1 to 60 or a name: {hint}")


def _scenario(number: int, dataset: str, condition: Condition) -> PaperScenario:
    classes, memories = DATASETS[dataset]
    tasks, level, growing, large_base = condition
    per_class, total = memories[level], memories[level] * classes
    return PaperScenario(
        number=number,
        name=f"{dataset}-{condition.name(per_class if growing else f'{total // 1000}k')}",
        dataset=dataset,
        classes=classes,
        tasks=tasks,
        large_base=large_base,
        memory=None if growing else total,
        memory_per_class=per_class if growing else None,
        replay_batch=REPLAY_BATCH[tasks],
        in_tables=dataset != "landmark-v2-10k" or not (large_base or growing),
    )
