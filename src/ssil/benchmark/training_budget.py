"""What the training of a run costs, counted from its plan before it is run: images, gradient steps, passes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import torch

from ssil.benchmark.config import RunConfig
from ssil.benchmark.run_setup import memory_budget, settings_without_data
from ssil.benchmark.scenario import chosen_sizes
from ssil.core.classes import ClassTable
from ssil.core.randomness import Randomness
from ssil.learning.batches import Pool
from ssil.learning.memory import Memory, MemoryBudget, by_class, random_selection, update
from ssil.learning.method import Phase

PASSES = {"network": 3, "head": 1, "scorer": 0}
"""Forward passes that training a part of the model takes for an image: a backward pass takes as long as two."""


@dataclass(frozen=True)
class TrainingBudget:
    """The cost of training, in three counts that add up.

    >>> TrainingBudget(images=64, steps=1, passes=192) + TrainingBudget(images=36, steps=1, passes=108)
    TrainingBudget(images=100, steps=2, passes=300)
    """

    images: int = 0
    """Images in all mini-batches, each as often as it is in one; without those whose features train a scorer."""
    steps: int = 0
    """Gradient steps on them."""
    passes: int = 0
    """Forward passes of an image through a network, or what takes as long: a rough measure of time."""

    def __add__(self, other: "TrainingBudget") -> "TrainingBudget":
        return TrainingBudget(self.images + other.images, self.steps + other.steps, self.passes + other.passes)


def run_budget(config: RunConfig, images: Sequence[int]) -> TrainingBudget:
    """Return what the training of a run costs, without that of a branch.

    Args:
        config: The run's settings.
        images: The number of training images of each class.
    """
    return sum(task_budgets(config, images), TrainingBudget())


def task_budgets(config: RunConfig, images: Sequence[int]) -> Iterator[TrainingBudget]:
    """Yield what the training of each task costs, see `run_budget`; classes arrive in the order of `images`."""
    configured, _ = settings_without_data(config)
    sizes, random = chosen_sizes(config, len(images)), Randomness(config.seed)
    budget = memory_budget(config, configured.method, sum(sizes))
    for classes, pool in _tasks(tuple(sizes), budget, config.seed, tuple(images)):  # type: ignore[arg-type]  # a frozen one
        phases = [part for part in configured.method.plan(classes) if isinstance(part, Phase)]
        yield sum((_phase_budget(phase, pool, classes, random) for phase in phases), TrainingBudget())


@lru_cache(4)  # the same for methods and schedules of one stream, which are counted one after the other
def _tasks(
    sizes: tuple[int, ...], budget: MemoryBudget, seed: int, images: tuple[int, ...]
) -> tuple[tuple[ClassTable, Pool], ...]:
    """Return the class table and the training images, exemplars included, of each task of a stream."""
    tasks, memory, select = list[tuple[ClassTable, Pool]](), Memory(), random_selection(Randomness(seed))
    labels = torch.arange(len(images)).repeat_interleave(torch.tensor(images))
    for task, seen in enumerate(accumulate(sizes), 1):
        classes = ClassTable(("?",) * seen, (0, *accumulate(sizes[:task])))
        new = torch.nonzero((labels >= classes.old) & (labels < seen)).flatten()
        tasks.append((classes, Pool(new, memory.indices, labels)))
        memory = update(memory, by_class(new, labels), classes, budget, select)
    return tuple(tasks)


def _phase_budget(phase: Phase, pool: Pool, classes: ClassTable, random: Randomness) -> TrainingBudget:
    """Return the cost of a phase; all batches of an epoch but the last have one size."""
    chosen = phase.images(pool, classes, random) if phase.images else pool
    if phase.trained == "scorer" or not len(chosen.all):
        return TrainingBudget()
    steps = phase.batches.steps(chosen)
    batch_at = phase.batches.epoch(chosen, random, 0)
    first, last = (sum(map(len, batch_at(step))) for step in (0, steps - 1))
    images = phase.schedule.epochs * (first * (steps - 1) + last)
    return TrainingBudget(images, phase.schedule.epochs * steps, images * (PASSES[phase.trained] + len(phase.teachers)))
