from typing import Any

import pytest
import torch
from torch import Tensor

import oracles
from ssil.core.classes import ClassTable
from ssil.learning.batches import ClassBalanced, Mixed, Replay
from ssil.learning.method import Phase, Term
from ssil.learning.registry import configure
from ssil.learning.snapshot import Scorer, Step, TeacherOutput
from ssil.nn.heads import LinearHead
from ssil.nn.network import Output

FIRST, THREE = ClassTable(("?",) * 3, (0, 3)), ClassTable(("?",) * 8, (0, 3, 5, 8))
LABELS = [0, 2, 3, 4, 5, 6, 7, 7]


def draw(*shape: int, seed: int = 0) -> Tensor:
    return 3 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def phase(name: str = "ssil", classes: ClassTable = THREE, increments: int | None = None, **options: Any) -> Phase:
    (only,) = configure(name, options=options, increments=increments).method.plan(classes)
    assert isinstance(only, Phase)
    return only


def terms(student: Tensor, teacher: Tensor, labels: list[int], main: Phase, classes: ClassTable) -> dict[str, Term]:
    """The loss terms of a batch, with the teacher that the phase asks for."""
    views = {name: TeacherOutput(Output(teacher, teacher), -teacher) for name in main.teachers}
    output = Output(student, student[:, :0])
    return main.loss(Step(torch.tensor(labels), output, classes, views, torch.ones(0), LinearHead(1), Scorer()))


def loss(main: Phase, classes: ClassTable = THREE, labels: list[int] = LABELS) -> tuple[Tensor, list[float]]:
    """The logits of a batch, and for each of its images the sum of the loss terms."""
    student, teacher = draw(len(labels), classes.seen), draw(len(labels), classes.old, seed=1)
    found = terms(student, teacher, labels, main, classes)
    assert all(term.divisor == len(labels) for term in found.values())
    return student, torch.stack([term.values for term in found.values()]).sum(0).tolist()


DISTILLED = {"tkd": [0, 3, 5], "gkd": [0, 5], "none": [0]}


@pytest.mark.parametrize("softmax", ["separate", "joint"])
@pytest.mark.parametrize("distil", DISTILLED)
@pytest.mark.parametrize("kd_tau_sq", [False, True])
def test_the_loss_is_its_equations(softmax: str, distil: str, kd_tau_sq: bool) -> None:
    """CE-SS or CE, and TKD, GKD or nothing, for each image, with a weight of 1 or of the squared temperature."""
    student, found = loss(phase(softmax=softmax, distil=distil, kd_tau_sq=kd_tau_sq, temperature=3.0))
    expected = []
    for scores, target, label in zip(oracles.rows(student), oracles.rows(draw(8, 5, seed=1)), LABELS, strict=True):
        separate = oracles.separated_cross_entropy(scores, label, 5)
        distilled = oracles.tkd(scores, target, DISTILLED[distil], 3.0)
        ce = separate if softmax == "separate" else oracles.cross_entropy(scores, label)
        expected.append(ce + (9 if kd_tau_sq else 1) * distilled)
    assert found == pytest.approx(expected)


def test_the_mean_over_tasks_is_the_sum_by_their_number() -> None:
    mean, total = (
        terms(draw(8, 8), draw(8, 5, seed=1), LABELS, phase(tkd_reduction=reduction), THREE)["kd"].values
        for reduction in ("mean", "sum")
    )
    torch.testing.assert_close(2 * mean, total)


def test_the_first_task_is_cross_entropy() -> None:
    main = phase(classes=FIRST)
    student, found = loss(main, FIRST, [0, 1, 2, 0])
    assert main.teachers == ()
    assert found == pytest.approx(
        [
            oracles.cross_entropy(scores, label)
            for scores, label in zip(oracles.rows(student), [0, 1, 2, 0], strict=True)
        ]
    )


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ce", {"softmax": "joint", "distil": "none"}),
        ("ce_ss", {"distil": "none"}),
        ("ce_tkd", {"softmax": "joint", "batches": "mixed"}),
        ("ce_gkd", {"softmax": "joint", "distil": "gkd", "batches": "mixed"}),
    ],
)
def test_the_ablations_are_settings_of_ssil(name: str, options: dict[str, Any]) -> None:
    mine, setting = phase(name), phase(**options)
    assert (mine.batches, mine.schedule, mine.teachers) == (setting.batches, setting.schedule, setting.teachers)
    assert loss(mine)[1] == loss(setting)[1]


@pytest.mark.parametrize(("increments", "replay"), [(20, 16), (10, 32), (5, 64), (None, 32)])
def test_replay_batches_of_the_paper(increments: int | None, replay: int) -> None:
    assert phase(increments=increments).batches == Replay(128, replay)
    assert phase(increments=increments, replay_batch=7).batches == Replay(128, 7)
    assert phase(increments=increments, batches="mixed").batches == Mixed(128)


@pytest.mark.parametrize("bounds", [(0, 3, 5, 6), (0, 1, 4)], ids=["one new class", "one old class"])
def test_a_group_of_one_class_has_one_softmax_with_all_others(bounds: tuple[int, ...]) -> None:
    classes = ClassTable(("?",) * bounds[-1], bounds)
    main = phase(classes=classes, distil="none")
    labels = list(range(classes.seen))
    student, found = loss(main, classes, labels)
    assert main.batches == ClassBalanced(128)
    assert found == pytest.approx(
        [oracles.cross_entropy(z, y) for z, y in zip(oracles.rows(student), labels, strict=True)]
    )
    assert phase(classes=classes, min_group=1).batches == Replay(128, 32)


def test_consecutive_tasks_of_one_class_are_distilled_as_one() -> None:
    classes = ClassTable(("?",) * 7, (0, 3, 4, 5, 7))
    student, teacher = draw(3, 7), draw(3, 5, seed=1)
    found = terms(student, teacher, [0, 3, 6], phase(classes=classes), classes)["kd"].values.tolist()
    pairs = zip(oracles.rows(student), oracles.rows(teacher), strict=True)
    assert found == pytest.approx([oracles.tkd(scores, target, [0, 3, 5], 2.0) for scores, target in pairs])
