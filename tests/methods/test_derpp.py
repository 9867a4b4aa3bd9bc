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

BOUNDS = (0, 3, 5, 8)
CLASSES = ClassTable(("?",) * 8, BOUNDS)
LABELS = [6, 0, 4, 5, 1]
EXEMPLARS = [False, True, True, False, False]
"""The last image is of an old class, but it arrived with the task."""
STORED_CLASSES = [0, 3, 5, 0, 0]
"""How many classes there were when an exemplar was stored: 0 for images that are none."""
NAN = float("nan")


def phase(**options: object) -> Phase:
    (only,) = configure("derpp", options=options).method.plan(CLASSES)
    assert isinstance(only, Phase)
    return only


def draw(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return 3 * torch.randn(*shape, generator=generator, dtype=torch.float64)


def stored_logits() -> torch.Tensor:
    """Logits over the classes that existed when each exemplar was stored; the rest is NaN."""
    values = draw(len(LABELS), BOUNDS[-2])
    for row, known in enumerate(STORED_CLASSES):
        values[row, known:] = NAN
    return values


def terms(logits: torch.Tensor, stored: dict[str, torch.Tensor], **options: object) -> dict[str, Term]:
    step = Step(
        torch.tensor(LABELS),
        Output(logits, logits),
        CLASSES,
        {},
        torch.ones(0),
        LinearHead(1),
        Scorer(),
        exemplars=torch.tensor(EXEMPLARS),
        stored=stored,
    )
    return phase(**options).loss(step)


def value(term: Term) -> float:
    return float(term.values.sum()) / term.divisor


@pytest.mark.parametrize(("alpha", "beta"), [(0.1, 0.5), (0.3, 1.0)])
def test_the_loss_is_its_equation(alpha: float, beta: float) -> None:
    """Eq. 6: cross-entropy of new images, distance to stored logits, cross-entropy of exemplars."""
    logits, stored = draw(len(LABELS), BOUNDS[-1]), stored_logits()
    found = terms(logits, {"logits": stored}, alpha=alpha, beta=beta)
    ce, replay, distance = oracles.derpp(logits.tolist(), LABELS, EXEMPLARS, stored.tolist(), alpha, beta)
    assert value(found["ce"]) == pytest.approx(ce, rel=1e-12)
    assert value(found["replay"]) == pytest.approx(replay, rel=1e-12)
    assert value(found["logits"]) == pytest.approx(distance, rel=1e-12)


def test_only_classes_that_existed_then_are_pulled_to_stored_logits() -> None:
    logits = draw(len(LABELS), BOUNDS[-1]).requires_grad_()
    terms(logits, {"logits": stored_logits()})["logits"].values.sum().backward()
    assert logits.grad is not None
    pulled = logits.grad != 0
    assert pulled.sum(1).tolist() == STORED_CLASSES
    assert not pulled[:, BOUNDS[-2] :].any()


def test_a_first_task_has_no_stored_logits() -> None:
    assert [*terms(draw(len(LABELS), BOUNDS[-1]), {})] == ["ce", "replay"]


def test_an_exemplar_without_stored_logits_counts_by_its_label_alone() -> None:
    stored = torch.full((len(LABELS), BOUNDS[-2]), NAN)
    found = terms(draw(len(LABELS), BOUNDS[-1]), {"logits": stored})
    assert value(found["logits"]) == 0
    assert value(found["replay"]) > 0


def test_batches_are_those_of_replay() -> None:
    assert isinstance(phase().batches, Replay)
    assert phase(replay_batch=7).batches == Replay(128, 7)
