"""The budget counted before a run is what the run's record counts."""

from pathlib import Path

import pytest

import tiny_runs
from ssil.benchmark.runner import run
from ssil.benchmark.training_budget import TrainingBudget, run_budget, task_budgets
from ssil.learning.registry import recipes

IMAGES = (7, 5, 9, 6, 8, 7)


@pytest.mark.parametrize("name", recipes())
def test_a_run_costs_what_was_counted(name: str, tmp_path: Path) -> None:
    dataset = tiny_runs.patterns(tmp_path / "patterns.npz", IMAGES)
    order = tmp_path / "order.txt"
    order.write_text("\n".join(map(str, range(6))))
    config = tiny_runs.config(dataset, method=name, tasks=3, memory=12, epochs=2, class_order=str(order))
    record = run(config)
    counted = [(budget.images, budget.steps) for budget in task_budgets(config, IMAGES)]
    assert counted == [(task.images_seen, task.gradient_steps) for task in record.tasks]
    total = run_budget(config, IMAGES)
    assert record.summary is not None
    assert (total.images, total.steps) == (record.summary.images_seen, record.summary.gradient_steps)


def test_a_teacher_and_a_frozen_backbone_change_the_passes(tmp_path: Path) -> None:
    config = tiny_runs.config(tmp_path / "patterns.npz", method="lucir", tasks=2, memory=2, batch=4)
    first, later = task_budgets(config, [8, 8])
    assert first == TrainingBudget(images=8, steps=2, passes=3 * 8)
    assert later == TrainingBudget(images=8, steps=2, passes=4 * 8)  # nine images, of which a batch of one is dropped
