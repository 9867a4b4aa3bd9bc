import pytest
import torch

import oracles
from ssil.core.classes import ClassTable
from ssil.learning.batches import Replay
from ssil.learning.method import Phase, Term
from ssil.learning.registry import configure
from ssil.learning.snapshot import Scorer, Step
from ssil.nn.heads import LinearHead
from ssil.nn.network import Output

LABELS = [6, 0, 4, 5, 7, 1]


def phase(classes: ClassTable, **options: object) -> Phase:
    (only,) = configure("er_ace", options=options).method.plan(classes)
    assert isinstance(only, Phase)
    return only


def loss(logits: torch.Tensor, labels: list[int], bounds: tuple[int, ...]) -> dict[str, Term]:
    classes = ClassTable(("?",) * bounds[-1], bounds)
    output = Output(logits, logits)
    return phase(classes).loss(Step(torch.tensor(labels), output, classes, {}, torch.ones(0), LinearHead(1), Scorer()))


def draw(classes: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return 3 * torch.randn(len(LABELS), classes, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize(
    ("bounds", "restricted"),
    [((0, 3, 5, 8), 5), ((0, 5, 7, 8), 0), ((0, 8), 0)],
    ids=["three new classes", "one new class", "first task"],
)
def test_the_loss_is_its_equation(bounds: tuple[int, ...], restricted: int) -> None:
    """New images have a softmax over new classes if there are several, exemplars one over all."""
    logits, old = draw(8), bounds[-2]
    wanted: dict[str, list[float]] = {"ce": [], "replay": []}
    for scores, label in zip(oracles.rows(logits), LABELS, strict=True):
        name = "replay" if label < old else "ce"
        wanted[name].append(oracles.asymmetric_cross_entropy(scores, label, restricted))
    found = loss(logits, LABELS, bounds)
    for name, values in wanted.items():
        assert found[name].values.tolist() == pytest.approx(values)
        assert found[name].divisor == len(values)


def test_new_images_have_no_gradient_for_old_classes() -> None:
    logits = draw(8).requires_grad_()
    loss(logits, LABELS, (0, 3, 5, 8))["ce"].values.sum().backward()
    assert logits.grad is not None
    assert not logits.grad[:, :5].any()
    assert logits.grad[0, 5:].all()


def test_every_batch_has_exemplars() -> None:
    two = ClassTable(("?",) * 5, (0, 3, 5))
    assert phase(two).batches == Replay(128, 32)
    assert phase(two, replay_batch=9).batches == Replay(128, 9)
    assert phase(two).teachers == ()
