import pytest
import torch
from torch import Tensor

import oracles
from ssil.core.classes import ClassTable
from ssil.learning.batches import NewOnly
from ssil.learning.method import Phase
from ssil.learning.registry import configure
from ssil.learning.snapshot import Scorer, Step, TeacherOutput
from ssil.nn.heads import LinearHead
from ssil.nn.network import Output


def draw(*shape: int, seed: int = 0) -> Tensor:
    return 3 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def phase(classes: ClassTable) -> Phase:
    (only,) = configure("lwf").method.plan(classes)
    assert isinstance(only, Phase)
    return only


@pytest.mark.parametrize("bounds", [(0, 3, 5, 8), (0, 3, 5, 6)], ids=["three new classes", "one new class"])
def test_the_loss_is_its_equations(bounds: tuple[int, ...]) -> None:
    """The softmax over new classes, or over all if there is one new class only, and TKD."""
    classes = ClassTable(("?",) * bounds[-1], bounds)
    labels = [bounds[-1] - 1, bounds[-2]]
    student, teacher = draw(2, classes.seen), draw(2, classes.old, seed=1)
    view = TeacherOutput(Output(teacher, teacher), -teacher)
    batch = Step(
        torch.tensor(labels), Output(student, student), classes, {"old": view}, torch.ones(0), LinearHead(1), Scorer()
    )
    found = phase(classes).loss(batch)
    for row, (scores, target, label) in enumerate(
        zip(oracles.rows(student), oracles.rows(teacher), labels, strict=True)
    ):
        old = 5 if classes.new > 1 else 0
        assert found["ce"].values[row].item() == pytest.approx(oracles.separated_cross_entropy(scores, label, old))
        assert found["kd"].values[row].item() == pytest.approx(oracles.tkd(scores, target, [0, 3, 5], 2.0))


def test_no_exemplars_are_kept_or_trained_on() -> None:
    assert configure("lwf").method.memory == "none"
    assert phase(ClassTable(("?",) * 5, (0, 3, 5))).batches == NewOnly(128)
    assert phase(ClassTable(("?",) * 3, (0, 3))).teachers == ()
