from pathlib import Path
from typing import Any

import pytest
import torch

import oracles
import tiny_runs
from followed_methods import follow
from ssil.benchmark.runner import run
from ssil.core.classes import ClassTable
from ssil.learning.batches import Replay
from ssil.learning.method import Phase, Term
from ssil.learning.registry import configure
from ssil.learning.snapshot import Scorer, Step
from ssil.nn.heads import LinearHead
from ssil.nn.network import Output

LABELS = [6, 0, 4, 5, 7, 1]
REPLAYED = [False, True, True, True, False, False]
"""One replayed image is of a new class, and one of the task's images of an old one."""


def phase(classes: ClassTable, **options: object) -> Phase:
    (only,) = configure("er_ace", options=options).method.plan(classes)
    assert isinstance(only, Phase)
    return only


def loss(logits: torch.Tensor, labels: list[int], bounds: tuple[int, ...]) -> dict[str, Term]:
    classes = ClassTable(("?",) * bounds[-1], bounds)
    output, head = Output(logits, logits), LinearHead(1)
    replayed = torch.tensor(REPLAYED)
    step = Step(torch.tensor(labels), output, classes, {}, torch.ones(0), head, Scorer(), replayed=replayed)
    return phase(classes).loss(step)


def draw(classes: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return 3 * torch.randn(len(LABELS), classes, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize(
    ("bounds", "restricted"),
    [((0, 3, 5, 8), 5), ((0, 5, 7, 8), 0), ((0, 8), 0)],
    ids=["three new classes", "one new class", "first task"],
)
def test_the_loss_is_its_equation(bounds: tuple[int, ...], restricted: int) -> None:
    """Images of several new classes have a softmax over these unless they are replayed; all others over all."""
    logits = draw(8)
    wanted: dict[str, list[float]] = {"ce": [], "replay": []}
    for scores, label, replayed in zip(oracles.rows(logits), LABELS, REPLAYED, strict=True):
        if replayed:
            wanted["replay"].append(oracles.cross_entropy(scores, label))
        else:
            wanted["ce"].append(oracles.asymmetric_cross_entropy(scores, label, restricted))
    found = loss(logits, LABELS, bounds)
    for name, values in wanted.items():
        assert found[name].values.tolist() == pytest.approx(values)
        assert found[name].divisor == len(values)


def test_new_images_have_no_gradient_for_old_classes() -> None:
    logits = draw(8).requires_grad_()
    loss(logits, LABELS, (0, 3, 5, 8))["ce"].values.sum().backward()
    assert logits.grad is not None
    of_new_classes = logits.grad[[0, 4]]
    assert not of_new_classes[:, :5].any()
    assert of_new_classes[:, 5:].all()


def test_every_batch_has_exemplars() -> None:
    two = ClassTable(("?",) * 5, (0, 3, 5))
    assert phase(two).batches == Replay(128, 32)
    assert phase(two, replay_batch=9).batches == Replay(128, 9)
    assert phase(two).teachers == ()


def test_images_of_new_classes_are_replayed_too(tmp_path: Path) -> None:
    """As many of each as an old class has exemplars: in the second task 3, as 9 exemplars are of 3 classes."""
    dataset = tiny_runs.patterns(tmp_path / "patterns.npz", [8] * 6)
    _, task, _ = follow("er_ace", dataset)
    replayed = {int(index) for call in task.calls for index in call.indices[call.replayed]}
    exemplars = {*task.memory.indices.tolist()}
    assert exemplars < replayed <= exemplars | {*task.task.indices.tolist()}
    assert len(replayed - exemplars) == 3


def test_new_classes_are_recognised(tmp_path: Path) -> None:
    """Over half of a task's images, right after it: with exemplars alone in the replay none was."""
    dataset = tiny_runs.patterns(tmp_path / "easy.npz", [8] * 6)
    settings: dict[str, Any] = {"task_sizes": (2, 2, 2), "epochs": 12, "later_epochs": 12, "batch": 8, "memory": 24}
    record = run(tiny_runs.config(dataset, **settings, method="er_ace"))
    assert min(task.task_top1[-1] or 0.0 for task in record.tasks) > 50
