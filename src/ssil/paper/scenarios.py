"""The paper's 60 scenarios: 4 settings x 3 data sets x 5 conditions."""

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from itertools import product

from ssil.errors import UserError

DATASETS = {
    "imagenet": (1_000, (5, 10, 20)),
    "landmark-v2-1k": (1_000, (5, 10, 20)),
    "landmark-v2-10k": (10_000, (2, 4, 6)),
}
"""Classes, and the three sizes of memory as exemplars per class: all along if it grows, in the end if it is fixed."""

CONDITIONS = ((10, 0), (10, 1), (10, 2), (20, 1), (5, 1))
"""Tasks (the paper's T), and which of the three memories."""

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
    grid = product((False, True), (False, True), DATASETS, CONDITIONS)
    return tuple(_scenario(number, *cell) for number, cell in enumerate(grid, start=1))


def find(key: str | int) -> PaperScenario:
    """A scenario by its name or its number.

    >>> find("landmark-v2-10k-largebase-growing-t20-4").number, find(2).name
    (59, 'imagenet-base-fixed-t10-10k')
    """
    known = {name: scenario for scenario in scenarios() for name in (scenario.name, str(scenario.number))}
    if str(key) in known:
        return known[str(key)]
    close = ", ".join(get_close_matches(str(key), [scenario.name for scenario in scenarios()], cutoff=0.0))
    raise UserError(f"scenario: {key!r} is none of the paper's; give a number from 1 to 60 or a name such as {close}")


def _scenario(number: int, large_base: bool, growing: bool, dataset: str, condition: tuple[int, int]) -> PaperScenario:
    classes, memories = DATASETS[dataset]
    tasks, which = condition
    per_class, total = memories[which], memories[which] * classes
    base, kind = "largebase" if large_base else "base", "growing" if growing else "fixed"
    return PaperScenario(
        number=number,
        name=f"{dataset}-{base}-{kind}-t{tasks}-{per_class if growing else f'{total // 1000}k'}",
        dataset=dataset,
        classes=classes,
        tasks=tasks,
        large_base=large_base,
        memory=None if growing else total,
        memory_per_class=per_class if growing else None,
        replay_batch=REPLAY_BATCH[tasks],
        in_tables=dataset != "landmark-v2-10k" or not (large_base or growing),
    )
