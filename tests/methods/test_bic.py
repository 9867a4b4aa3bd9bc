import math
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import oracles
from ssil.core.classes import ClassTable
from ssil.core.errors import UserError
from ssil.learning.batches import Mixed
from ssil.learning.method import ImageSelection, Phase, Stage
from ssil.learning.registry import configure
from ssil.learning.schedule import Schedule
from ssil.learning.snapshot import Scorer, Step, TeacherOutput
from ssil.learning.training_subsets import hold_out_in_total, hold_out_per_class
from ssil.methods.bic import Correction, bias_loss, distillation_loss
from ssil.nn.heads import LinearHead
from ssil.nn.network import Output

TWO, THREE = ClassTable(("?",) * 5, (0, 3, 5)), ClassTable(("?",) * 7, (0, 3, 5, 7))
ORIGINAL: dict[str, Any] = {"bias_lr": 0.1, "bias_momentum": 0.9, "beta_penalty": 0.1}


def correction(alpha: float, beta: float) -> Correction:
    scorer = Correction()
    scorer.restore({"alpha": torch.tensor(alpha), "beta": torch.tensor(beta)})
    return scorer.double()


def numbers(scorer: Scorer) -> tuple[float, float]:
    assert isinstance(scorer, Correction)
    return scorer.alpha.item(), scorer.beta.item()


def logits(*shape: int) -> Tensor:
    return 3 * torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def step(
    values: Tensor,
    labels: list[int],
    classes: ClassTable,
    teacher: TeacherOutput | None = None,
    scorer: Scorer | None = None,
) -> Step:
    output = Output(values, values[:, :0])
    teachers = {"old": teacher} if teacher else {}
    return Step(
        torch.tensor(labels), output, classes, teachers, torch.ones(0), LinearHead(1), scorer or correction(1.0, 0.0)
    )


def parts(profile: str = "paper", classes: ClassTable = TWO, **options: Any) -> tuple[Phase | Stage, ...]:
    return configure("bic", profile, options=options).method.plan(classes)


def phase(name: str, profile: str = "paper", classes: ClassTable = TWO, **options: Any) -> Phase:
    (found,) = (part for part in parts(profile, classes, **options) if part.name == name)
    assert isinstance(found, Phase)
    return found


# What is learnt


@pytest.mark.parametrize("classes", [TWO, THREE])
def test_lambda_is_the_share_of_old_classes(classes: ClassTable) -> None:
    """The main loss and its slopes against the equations, of the teacher's scores and the student's raw logits."""
    mine, corrected = logits(6, classes.seen).requires_grad_(), logits(6, classes.old)
    view, labels = TeacherOutput(Output(-corrected, corrected[:, :0]), corrected), [0, 1, 2, 3, 4, classes.old]
    terms = phase("main").loss(step(mine, labels, classes, view, correction(7.0, 9.0)))
    total = torch.stack([term.values.sum() / term.divisor for term in terms.values()]).sum()
    (gradient,) = torch.autograd.grad(total, mine)
    for row, (scores, label, teacher) in enumerate(
        zip(oracles.rows(mine.detach()), labels, oracles.rows(corrected), strict=True)
    ):
        assert sum(term.values[row].item() for term in terms.values()) == pytest.approx(
            oracles.weighted_by_class_shares(scores, label, teacher, 2.0)
        )
        slopes = oracles.slopes(lambda z, y=label, t=teacher: oracles.weighted_by_class_shares(z, y, t, 2.0), scores)  # type: ignore[misc]
        assert (6 * gradient[row]).tolist() == pytest.approx(slopes, abs=1e-8)


def test_the_first_task_is_cross_entropy() -> None:
    values, first = logits(4, 3), ClassTable(("?",) * 3, (0, 3))
    terms = distillation_loss(step(values, [0, 1, 2, 0], first), temperature=2.0)
    assert list(terms) == ["ce"]
    assert torch.equal(terms["ce"].values, F.cross_entropy(values, torch.tensor([0, 1, 2, 0]), reduction="none"))


def test_no_correction_changes_nothing() -> None:
    output = Output(logits(5, 7), logits(5, 0))
    assert torch.equal(Correction()(output, THREE), output.logits)


def test_a_correction_is_of_the_last_block_alone() -> None:
    output = Output(logits(5, 7), logits(5, 0))
    scores = correction(0.5, -2.0)(output, THREE).detach()
    assert torch.equal(scores[:, :5], output.logits[:, :5])
    for row, values in zip(oracles.rows(scores), oracles.rows(output.logits), strict=True):
        assert row == pytest.approx(oracles.corrected(values, 5, 0.5, -2.0))


def test_a_step_by_hand() -> None:
    """One old class, one new, two images: z = (0, ln 3) of the old class, z = (0, 0) of the new one.

    Without a correction the first is called new with p = 3 / (1 + 3) = 3/4, the second with 1/2. The slope of
    cross-entropy at the new score is p - [is new]: 3/4 and -1/2. The score is alpha z + beta, so the mean slopes are
    d alpha = (3/4 ln 3 + -1/2 * 0) / 2 = 3/8 ln 3 and d beta = (3/4 - 1/2) / 2 = 1/8.
    """
    scorer = correction(1.0, 0.0)
    values = torch.tensor([[0.0, math.log(3)], [0.0, 0.0]], dtype=torch.float64)
    seen = step(values, [0, 1], ClassTable(("?",) * 2, (0, 1, 2)), scorer=scorer.requires_grad_())
    schedule = phase("bias").schedule
    optimizer = torch.optim.SGD(scorer.parameters(), schedule.lr_at(0), schedule.momentum, 0.0, schedule.weight_decay)
    terms = bias_loss(seen, beta_penalty=0.0)
    assert terms["ce"].values.tolist() == pytest.approx([math.log(4), math.log(2)])
    (terms["ce"].values.sum() / terms["ce"].divisor).backward()
    optimizer.step()
    assert numbers(scorer) == pytest.approx((1 - 0.001 * 3 / 8 * math.log(3), -0.001 / 8), rel=1e-12)


def test_the_penalty_of_the_original_is_on_beta() -> None:
    seen = step(logits(3, 5), [0, 3, 4], TWO, scorer=correction(2.0, 3.0))
    penalty = bias_loss(seen, beta_penalty=0.1)["penalty"]
    assert penalty.values.sum().item() / penalty.divisor == pytest.approx(0.1 * 9 / 2)
    assert list(bias_loss(seen, beta_penalty=0.0)) == ["ce"]


# How it is learnt


def test_the_plan_of_the_paper() -> None:
    first = ClassTable(("?",) * 3, (0, 3))
    assert [part.name for part in parts(classes=first)] == ["main"]
    assert [part.name for part in parts()] == ["forget", "main", "bias"]
    main, bias = phase("main"), phase("bias")
    assert main.schedule.lr == pytest.approx((1e-1, 1e-2, 1e-3, 1e-4))
    assert bias.schedule.lr == pytest.approx((1e-3, 1e-4, 1e-5, 1e-6))
    assert main.schedule == Schedule(100, main.schedule.lr, (30, 60, 90), 0.9, 1e-4)
    assert bias.schedule == Schedule(200, bias.schedule.lr, (60, 120, 180), 0.0, 0.0)
    assert (main.batches, bias.batches) == (Mixed(256), Mixed(256, drop_last=False))
    assert (main.trained, bias.trained) == ("network", "scorer")
    assert (main.teachers, bias.teachers) == (("old",), ())
    assert phase("main", classes=first).teachers == ()
    assert phase("main", classes=first).images is None
    assert phase("main", classes=first, validation="original").images is not None


def test_the_correction_takes_twice_the_main_epochs() -> None:
    (*_, short) = configure("bic", training={"epochs": 8, "batch": 64}).method.plan(TWO)
    assert isinstance(short, Phase)
    assert (short.schedule.epochs, short.schedule.milestones, short.batches) == (16, (5, 10, 14), Mixed(64, False))
    assert (phase("bias", "quick").schedule.epochs, phase("bias", "quick").schedule.lr[0]) == (200, 0.1)
    assert phase("bias", bias_epochs=5).schedule.epochs == 5
    assert phase("bias", **ORIGINAL).schedule.momentum == 0.9


@pytest.mark.parametrize(
    ("profile", "rule"), [("paper", hold_out_per_class), ("quick", hold_out_per_class), ("official", hold_out_in_total)]
)
def test_the_split_of_each_profile(profile: str, rule: ImageSelection) -> None:
    images = phase("bias", profile).images
    assert isinstance(images, partial)
    assert images.func is rule
    assert images.keywords == {"share": 0.1}


@pytest.mark.parametrize("options", [{"held_share": 0.6}, {"held_share": 0.0}, {"bias_momentum": 1.0}, {"bias_lr": 0}])
def test_senseless_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=next(iter(options))):
        parts(**options)
