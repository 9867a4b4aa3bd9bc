"""MEMO: what is shared, what a task adds, and what stays frozen."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

import tiny_runs
from followed_methods import IMAGES, TaskTrace, copied, follow
from ssil.core.classes import ClassTable
from ssil.learning.method import Phase
from ssil.learning.registry import configure
from ssil.learning.stages import alignment

TWO = ClassTable(("?",) * 5, (0, 3, 5))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("memo") / "patterns.npz", IMAGES)


def part(trace: TaskTrace, name: str) -> list[Tensor]:
    return [value for key, value in copied(trace.snapshot).items() if key.startswith(f"backbone.{name}.")]


def same(these: list[Tensor], those: list[Tensor]) -> bool:
    assert these
    return all(torch.equal(one, other) for one, other in zip(these, those, strict=True))


def test_a_task_adds_a_last_stage(dataset: Path) -> None:
    """The second of two stages: two convolutions and a shortcut, from 8 to 16 channels, with a norm each."""
    stage = 8 * 16 * 9 + 16 * 16 * 9 + 8 * 16 + 3 * 2 * 16
    sizes = []
    for number, trace in enumerate(follow("memo", dataset), 1):
        network, seen = trace.snapshot.network, trace.task.classes.seen
        assert network.head.weight.shape == (seen, 16 * number)
        sizes.append(sum(parameter.numel() for parameter in network.backbone.parameters()))
    assert [later - sizes[0] for later in sizes] == [0, stage, 2 * stage]


@pytest.mark.parametrize(("shared", "kept"), [("train", False), ("freeze", True)])
def test_what_stays_as_it_is(dataset: Path, shared: str, kept: bool) -> None:
    """Old last stages do in any case, batch-norm statistics included; the shared stages only if asked."""
    one, two, three = follow("memo", dataset, shared=shared)
    assert same(part(one, "new"), part(two, "old.0"))
    assert same(part(one, "new"), part(three, "old.0"))
    assert same(part(two, "new"), part(three, "old.1"))
    assert not same(part(two, "new"), part(three, "new"))
    assert same(part(one, "shared"), part(two, "shared")) == same(part(one, "shared"), part(three, "shared")) == kept


def test_a_gradient_reaches_the_shared_stages_through_old_ones(dataset: Path) -> None:
    """The plan freezes nothing but old last stages; the first task freezes nothing."""
    plan = configure("memo").method.plan
    frozen = [part.frozen for part in plan(TWO) if isinstance(part, Phase)]
    assert frozen == [("backbone.old",)]
    (main,) = plan(ClassTable(("?",) * 3, (0, 3)))
    assert isinstance(main, Phase)
    assert main.frozen == ()
    network = follow("memo", dataset)[1].snapshot.network.clone()
    network.get_submodule("backbone.shared").requires_grad_(True)
    features = network(torch.rand(2, 1, 8, 8, generator=torch.Generator().manual_seed(0))).features
    features[:, :16].sum().backward()  # of the first task's stage
    assert all(weight.grad is not None for weight in network.get_submodule("backbone.shared").parameters())


def test_rows_are_aligned_at_a_tasks_end(dataset: Path) -> None:
    for trace in follow("memo", dataset)[1:]:
        gamma = alignment(trace.snapshot.network.head.weight, trace.task.classes.old)
        assert gamma.item() == pytest.approx(1, abs=1e-5)
