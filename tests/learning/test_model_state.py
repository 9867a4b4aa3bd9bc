"""Models as named tensors, and that restoring one needs nothing of what only training needs."""

import subprocess
import sys
from pathlib import Path

import torch

import tiny_runs
from phase_plans import Scaled, learn_first, method, phase, two_tasks
from ssil.learning.model_state import join_groups, model_size, restore_snapshot, snapshot_tensors, split_groups
from ssil.learning.snapshot import MAIN

TRAINING = ("ssil.learning.engine", "ssil.learning.trainer", "lightning_fabric")


def test_restoring_a_model_imports_no_training_code() -> None:
    code = f"import sys, ssil.learning.model_state; print([name for name in {TRAINING} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_restored_snapshot_gives_the_same_scores(tmp_path: Path) -> None:
    plan, recipe = two_tasks(tmp_path), method(phase("main"))
    snapshot = learn_first(plan, recipe)[1]
    restored = restore_snapshot(snapshot_tensors(snapshot), recipe, snapshot.classes, plan.context)
    images = tiny_runs.preprocessed(plan.context, plan.stream.tasks[0].indices)
    before, after = (model.scores(model.network(images)) for model in (snapshot, restored))
    assert torch.equal(before, after)
    assert not any(parameter.requires_grad for parameter in restored.network.parameters())


def test_groups_of_tensors_come_back() -> None:
    groups = {"network": {"a/b": torch.zeros(1), "c": torch.ones(2)}, "scorer.main": {"d": torch.ones(())}}
    joined = join_groups(groups)
    assert [*joined] == ["network/a/b", "network/c", "scorer.main/d"]
    assert split_groups(joined) == groups


def test_the_size_of_a_model_by_hand(tmp_path: Path) -> None:
    """8 x 1 x 3 x 3 and a norm of 8, two blocks to 8 and 16 channels, two classes; statistics are no parameters."""
    plan = two_tasks(tmp_path)
    snapshot = learn_first(plan, method(phase("main"), scorer=Scaled))[1]
    stem, first = 8 * 9 + 2 * 8, 2 * (8 * 8 * 9 + 2 * 8)
    second = 16 * 8 * 9 + 16 * 16 * 9 + 16 * 8 + 3 * 2 * 16
    parameters = stem + first + second + 2 * (16 + 1)
    statistics, counters, scale = 2 * (8 + 2 * 8 + 3 * 16), 1 + 2 + 3, 1
    assert model_size(snapshot, MAIN) == (parameters, 8 * (parameters + statistics + counters + scale))
