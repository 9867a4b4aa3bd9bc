from pathlib import Path

import pytest
import torch

import task_ends
import tiny_runs
from followed_methods import IMAGES, copied, follow
from ssil.learning.batches import Mixed
from ssil.learning.method import Phase, Stage
from ssil.learning.registry import configure
from ssil.learning.snapshot import TaskState
from ssil.learning.stages import reset_head
from ssil.nn.network import Output


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("ft") / "patterns.npz", IMAGES)


@pytest.mark.parametrize("name", ["ft", "il2m", "scail"])
@pytest.mark.parametrize(("profile", "divisor"), [("paper", 1), ("official", 3)])
def test_the_papers_schedule(name: str, profile: str, divisor: int) -> None:
    plan = configure(name, profile).method.plan
    for classes, epochs, milestones, by in (
        (task_ends.table(3), 100, (40, 80), 1),
        (task_ends.table(3, 1, 2), 25, (10, 20), divisor),
    ):
        (main,) = plan(classes)
        assert isinstance(main, Phase)
        assert main.batches == Mixed(128)
        assert (main.schedule.epochs, main.schedule.milestones, main.teachers) == (epochs, milestones, ())
        assert main.schedule.lr == pytest.approx([rate / by for rate in (0.1, 0.01, 0.001)])


def test_another_training_is_another_chain() -> None:
    chains = [
        configure("ft", profile, {"lr": lr}, {"ft_head": head}).method.training_key
        for profile in ("paper", "official")
        for lr in (0.1, 0.2)
        for head in ("keep", "reset")
    ]
    assert len(set(chains)) == 8


def test_the_head_is_drawn_anew_for_later_tasks_only() -> None:
    plan = configure("ft", options={"ft_head": "reset"}).method.plan
    assert [type(part) for part in plan(task_ends.table(3))] == [Phase]
    assert [type(part) for part in plan(task_ends.table(3, 2))] == [Stage, Phase]


def reset_work(seed_head: float) -> TaskState:
    nothing = Output(torch.empty(0), torch.empty(0))
    head = task_ends.head([[seed_head] * 4] * 3, [seed_head] * 3)
    return task_ends.end(task_ends.table(2, 1), [], [], [], nothing, head)


def test_a_new_head_owes_nothing_to_the_old_one() -> None:
    """All rows, weights and biases, are PyTorch's own first values: U(-1/2, 1/2) for four features."""
    works = [reset_work(value) for value in (0.0, 9.0)]
    for work in works:
        before = work.network.head.weight
        reset_head(work)
        assert work.network.head.weight is before
        for rows in work.network.head.parameters():
            assert (rows.abs() <= 0.5).all()
            assert len(rows.unique()) == rows.numel()
    one, other = (dict(work.network.head.named_parameters()) for work in works)
    assert all(torch.equal(one[name], other[name]) for name in ("weight", "bias"))


def test_all_three_share_their_weights(dataset: Path) -> None:
    """Also where the head is drawn anew, which is another training."""
    last = {}
    for ft_head in ("keep", "reset"):
        weights = [
            [copied(trace.snapshot) for trace in follow(name, dataset, ft_head=ft_head)]
            for name in ("ft", "il2m", "scail")
        ]
        for mine, others in zip(weights[0], zip(*weights[1:], strict=True), strict=True):
            for theirs in others:
                assert mine.keys() == theirs.keys()
                assert all(torch.equal(mine[key], theirs[key]) for key in mine)
        last[ft_head] = weights[0]
    equal = [torch.equal(kept["head.weight"], reset["head.weight"]) for kept, reset in zip(*last.values(), strict=True)]
    assert equal == [True, False, False]
