"""The paper's 20 conditions (stream and memory), and its 60 scenarios: these conditions on three data sets."""

from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import NamedTuple

from ssil.core.errors import UserError, did_you_mean

LOW, MIDDLE, HIGH = range(3)
"""The three memory budgets (on ImageNet 5, 10 and 20 exemplars per class)."""

DATASETS = {
    "imagenet": (1_000, (5, 10, 20)),
    "landmark-v2-1k": (1_000, (5, 10, 20)),
    "landmark-v2-10k": (10_000, (2, 4, 6)),
}
"""Classes and the three memory budgets per data set, in exemplars per class: after each task if the memory grows, after
the last task if it is fixed."""

REPLAY_BATCH = {20: 16, 10: 32, 5: 64}
"""Exemplars in a batch (N_M) by T. The paper does not state it for large bases: the same values are used."""


class Condition(NamedTuple):
    """A stream with its memory budget, on any data set; `tasks` is the paper's T, not counting a large base."""

    tasks: int = 10
    level: int = MIDDLE
    growing: bool = False
    large_base: bool = False

    def name(self, memory: int | str) -> str:
        """Return the name of the condition's folder.

        >>> Condition(5, growing=True).name(10)
        'base-growing-t5-10'
        """
        base, kind = "largebase" if self.large_base else "base", "growing" if self.growing else "fixed"
        return f"{base}-{kind}-t{self.tasks}-{memory}"


MAIN = Condition()
"""The condition of most of the paper's figures: T = 10 and the middle memory budget."""


def setting(growing: bool = False, large_base: bool = False) -> tuple[Condition, ...]:
    """Return the five columns of a table: T = 10 with each memory budget, T = 20 and T = 5 with the middle one."""
    columns = ((10, LOW), (10, MIDDLE), (10, HIGH), (20, MIDDLE), (5, MIDDLE))
    return tuple(Condition(tasks, level, growing, large_base) for tasks, level in columns)


ALL = tuple(condition for large, growing in product((False, True), repeat=2) for condition in setting(growing, large))
"""All twenty conditions: four settings with five columns each."""


@dataclass(frozen=True)
class PaperScenario:
    """A condition on one of the paper's data sets.

    Either `memory` (total of a fixed memory) or `memory_per_class` (of a growing memory) is given. `tasks` is the
    paper's T: a large base adds a task with half of the classes before them. `in_tables` tells whether the paper prints
    results.
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
    """Return all 60 scenarios, by number."""
    settings = product((False, True), (False, True), DATASETS)
    grid = [(data, condition) for large, growing, data in settings for condition in setting(growing, large)]
    return tuple(_scenario(number, *cell) for number, cell in enumerate(grid, start=1))


def find(key: str | int) -> PaperScenario:
    """Return a scenario by its name or number; raise UserError if there is none.

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
