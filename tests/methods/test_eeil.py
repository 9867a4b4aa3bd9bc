import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import oracles
import tiny_runs
from followed_methods import LossCall, TaskTrace, follow, plan_for
from ssil.benchmark.runner import run
from ssil.core.classes import ClassTable
from ssil.learning import training_subsets
from ssil.learning.batches import Mixed, Pool
from ssil.learning.method import Phase, StepPosition
from ssil.learning.registry import configure
from ssil.learning.snapshot import Scorer, Step, TeacherOutput
from ssil.nn.heads import LinearHead
from ssil.nn.network import Output
from task_ends import end, table


def phases(classes: ClassTable, profile: str = "paper", **options: Any) -> dict[str, Phase]:
    parts = configure("eeil", profile, options=options).method.plan(classes)
    return {part.name: part for part in parts if isinstance(part, Phase)}


def draw(*shape: int, seed: int = 0) -> Tensor:
    return 3 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def parts_of(
    phase: Phase, classes: ClassTable, student: Tensor, labels: Tensor, teacher: Tensor
) -> Mapping[str, float]:
    """The loss terms of a batch for which the phase's teacher has the given output."""
    view = TeacherOutput(Output(teacher, draw(0)), teacher)
    teachers = dict.fromkeys(phase.teachers, view)
    step = Step(labels, Output(student, draw(0)), classes, teachers, draw(0), LinearHead(1), Scorer())
    return {name: float(term.values.sum() / term.divisor) for name, term in phase.loss(step).items()}


@pytest.mark.parametrize("profile", ["paper", "official"])
def test_the_plan_of_the_paper(profile: str) -> None:
    """Table S1: 40 epochs, 0.1, 10/20/30; 30 epochs, 0.01, 10/20; the code's last 30 comes too late."""
    (first,) = phases(table(10), profile).values()
    assert (first.name, first.teachers, first.keep_as) == ("main", (), None)
    main, balanced = phases(table(10, 10), profile).values()
    assert [main.name, balanced.name] == ["main", "balanced"]
    assert first.schedule == main.schedule
    assert (main.schedule.epochs, main.schedule.milestones) == (40, (10, 20, 30))
    assert main.schedule.lr == pytest.approx((0.1, 0.01, 0.001, 0.0001))
    assert (balanced.schedule.epochs, balanced.schedule.milestones) == (30, (10, 20))
    assert balanced.schedule.lr == pytest.approx((0.01, 0.001, 0.0001))
    assert {main.schedule.momentum, balanced.schedule.momentum} == {0.9}
    assert {main.schedule.weight_decay, balanced.schedule.weight_decay} == {1e-4}
    assert {main.batches, balanced.batches} == {Mixed(128)}
    assert (main.teachers, main.keep_as, main.images) == (("old",), "before_tuning", None)
    assert (balanced.teachers, balanced.images) == (("before_tuning",), training_subsets.balanced)
    assert {main.trained, balanced.trained} == {"network"}
    assert {main.start, balanced.start} == {"current"}
    assert {phase.gradients for phase in (first, main, balanced)} == {None}


def test_the_tuning_shrinks_with_the_main_phase_unless_it_is_given() -> None:
    (_, short) = configure("eeil", training={"epochs": 8}).method.plan(table(2, 2))
    assert isinstance(short, Phase)
    assert (short.schedule.epochs, short.schedule.milestones) == (6, (2, 4))
    assert phases(table(2, 2), "quick")["balanced"].schedule.epochs == 30
    chosen = phases(table(2, 2), balanced_epochs=15, balanced_lr=0.2)["balanced"].schedule
    assert (chosen.epochs, chosen.milestones) == (15, (5, 10))
    assert chosen.lr == pytest.approx((0.2, 0.02, 0.002))


@pytest.mark.parametrize(
    ("profile", "options", "blocks"),
    [
        ("paper", {}, [0, 3, 4, 6]),
        ("official", {}, [0, 3, 4, 6]),
        ("paper", {"legacy_blocks": True}, [0, 2, 4, 6]),
        ("paper", {"temperature": 3.0, "kd_tau_sq": True}, [0, 3, 4, 6]),
    ],
)
def test_the_main_loss(profile: str, options: dict[str, Any], blocks: Sequence[int]) -> None:
    """CE over all 8 classes, and TKD over the blocks of 3, 1 and 2 old classes: means over the batch."""
    classes, student, teacher, labels = table(3, 1, 2, 2), draw(5, 8), draw(5, 6, seed=1), torch.tensor([0, 3, 5, 6, 7])
    parts = parts_of(phases(classes, profile, **options)["main"], classes, student, labels, teacher)
    tau = options.get("temperature", 2.0)
    factor = tau**2 if profile == "official" or "kd_tau_sq" in options else 1.0
    ce = kd = 0.0
    for scores, target, label in zip(oracles.rows(student), oracles.rows(teacher), labels.tolist(), strict=True):
        ce += oracles.cross_entropy(scores, label) / 5
        kd += factor * oracles.tkd(scores, target, blocks, tau) / 5
    assert parts == pytest.approx({"ce": ce, "kd": kd}, rel=1e-9)


@pytest.mark.parametrize(("distil", "blocks"), [("new", [6, 8]), ("all", [0, 3, 4, 6, 8])])
@pytest.mark.parametrize("profile", ["paper", "official"])
def test_the_balanced_loss(profile: str, distil: str, blocks: list[int]) -> None:
    """Its teacher knows the new classes too: their block alone, or with all others."""
    classes, student, teacher, labels = table(3, 1, 2, 2), draw(5, 8), draw(5, 8, seed=1), torch.tensor([0, 3, 5, 6, 7])
    phase = phases(classes, profile, balanced_distil=distil, legacy_blocks=True)["balanced"]
    parts = parts_of(phase, classes, student, labels, teacher)
    factor = 4.0 if profile == "official" else 1.0
    ce = kd = 0.0
    for scores, target, label in zip(oracles.rows(student), oracles.rows(teacher), labels.tolist(), strict=True):
        inside = [bound - blocks[0] for bound in blocks]
        ce += oracles.cross_entropy(scores, label) / 5
        kd += factor * oracles.tkd(scores[blocks[0] :], target[blocks[0] :], inside, 2.0) / 5
    assert parts == pytest.approx({"ce": ce, "kd": kd}, rel=1e-9)


def test_the_losses_by_hand() -> None:
    """Two old and two new classes, all logits of the student 0: CE = log 4.

    A teacher's (0, 2 log 3) is (1/4, 3/4) at temperature 2, and KL((1/4, 3/4) || (1/2, 1/2))
    = 1/4 log(1/2) + 3/4 log(3/2) = 3/4 log 3 - log 2. In the tuning the old classes' (0, 2 log 7) don't count, unless
    all blocks do: (1/8, 7/8) adds 1/8 log(1/4) + 7/8 log(7/4) = 7/8 log 7 - 2 log 2.
    """
    classes, student, labels = table(2, 2), torch.zeros(1, 4, dtype=torch.float64), torch.tensor([3])
    three, seven = 2 * math.log(3), 2 * math.log(7)
    old = torch.tensor([[0.0, three]], dtype=torch.float64)
    own = torch.tensor([[0.0, seven, 0.0, three]], dtype=torch.float64)
    kd = 0.75 * math.log(3) - math.log(2)
    both = kd + 0.875 * math.log(7) - 2 * math.log(2)
    main, balanced = phases(classes).values()
    everything = phases(classes, balanced_distil="all")["balanced"]
    for phase, teacher, expected in ((main, old, kd), (balanced, own, kd), (everything, own, both)):
        parts = parts_of(phase, classes, student, labels, teacher)
        assert parts == pytest.approx({"ce": math.log(4), "kd": expected})


def distilled(classes: ClassTable, **options: Any) -> list[int]:
    """The classes whose logits feel the main phase's distillation."""
    student, teacher = draw(1, classes.seen).requires_grad_(), draw(1, classes.old, seed=1)
    view = TeacherOutput(Output(teacher, draw(0)), teacher)
    output = Output(student, draw(0))
    step = Step(torch.tensor([0]), output, classes, {"old": view}, draw(0), LinearHead(1), Scorer())
    phases(classes, **options)["main"].loss(step)["kd"].values.sum().backward()
    assert student.grad is not None
    return [int(c) for c in student.grad[0].nonzero()]


def test_legacy_blocks_leave_most_of_a_large_first_task_alone() -> None:
    """500 classes, then 50 at a time: classes 0-49 at t = 2, 0-99 at t = 3."""
    assert distilled(table(500, 50), legacy_blocks=True) == list(range(50))
    assert distilled(table(500, 50, 50), legacy_blocks=True) == list(range(100))
    assert distilled(table(500, 50, 50)) == list(range(550))


def test_legacy_blocks_make_no_difference_for_equal_tasks() -> None:
    classes, student, teacher, labels = table(2, 2, 2), draw(3, 6), draw(3, 4, seed=1), torch.tensor([0, 2, 4])
    both = [phases(classes, legacy_blocks=legacy)["main"] for legacy in (False, True)]
    one, other = (parts_of(phase, classes, student, labels, teacher) for phase in both)
    assert one == other


@pytest.mark.parametrize("sizes", [(1, 4), (2, 2, 7), (3, 1, 5), (1, 1, 1)])
def test_legacy_blocks_never_reach_beyond_the_old_classes(sizes: tuple[int, ...]) -> None:
    felt = distilled(table(*sizes), legacy_blocks=True)
    assert all(c < sum(sizes[:-1]) for c in felt)


def test_old_tasks_of_one_class_share_a_block() -> None:
    """A softmax over one class gives no signal."""
    assert distilled(table(3, 1, 1, 2)) == [0, 1, 2, 3, 4]
    assert distilled(table(3, 1, 2)) == [0, 1, 2]


def noisy(phase: Phase, moment: StepPosition, width: int = 5000) -> Tensor:
    """What the phase's hook adds to four rows of weights, whose gradients are 1; a bias without gradient is left."""
    head = LinearHead(width).grow(4, torch.Generator()).double()
    head.weight.grad = torch.ones_like(head.weight)
    assert phase.gradients is not None
    phase.gradients(end(table(3, 1), [], [], [], Output(draw(0), draw(0)), head), moment)
    assert head.get_parameter("bias").grad is None
    return head.weight.grad - 1


@pytest.mark.parametrize(
    ("name", "epoch", "images", "deviation"),
    [
        # 0.3 / (1 + e)**0.55 / B, e counted from 1 and, after 40 epochs of the main phase, from 41
        ("main", 0, 128, 0.3 / 2**0.55 / 128),
        ("main", 39, 128, 0.3 / 41**0.55 / 128),
        ("balanced", 0, 20, 0.3 / 42**0.55 / 20),
        ("balanced", 29, 128, 0.3 / 71**0.55 / 128),
    ],
)
def test_noise_fades_with_the_epochs(name: str, epoch: int, images: int, deviation: float) -> None:
    """20,000 draws: their mean and deviation are within five standard errors."""
    noise = noisy(phases(table(3, 2), grad_noise=True)[name], StepPosition(epoch, 3, images)) / deviation
    assert noise.std().item() == pytest.approx(1, abs=5 / (2 * 20000) ** 0.5)
    assert noise.mean().item() == pytest.approx(0, abs=5 / 20000**0.5)


def test_noise_depends_on_the_position_alone() -> None:
    main = phases(table(3, 2), grad_noise=True)["main"]
    one, same, epoch, step = (noisy(main, StepPosition(e, s, 4), 50) for e, s in ((1, 2), (1, 2), (2, 2), (1, 3)))
    assert torch.equal(one, same)
    for other in (epoch, step):
        assert torch.cosine_similarity(one.flatten(), other.flatten(), 0).abs() < 0.4


def test_noise_is_for_the_first_task_too() -> None:
    assert phases(table(3), grad_noise=True)["main"].gradients is not None


IMAGES = (8, 8, 6, 8, 7, 8)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("eeil") / "patterns.npz", IMAGES)


@pytest.fixture(scope="module")
def traces(dataset: Path) -> tuple[TaskTrace, ...]:
    """Three, one and two classes, 9 exemplars in all."""
    return follow("eeil", dataset)


def tuning(trace: TaskTrace) -> list[LossCall]:
    return [seen for seen in trace.calls if seen.phase.name == "balanced"]


def test_the_balanced_set_has_q_images_of_each_class(traces: tuple[TaskTrace, ...], dataset: Path) -> None:
    """q = 3 and 2, the memory's least; no image beyond it is trained on, and none of it is left out for good."""
    context = plan_for("eeil", dataset).context
    assert not tuning(traces[0])
    for trace, q in zip(traces[1:], (3, 2), strict=True):
        assert q == min(trace.memory.counts)
        pool = Pool(trace.task.indices, trace.memory.indices, context.samples.labels)
        chosen = training_subsets.balanced(pool, trace.task.classes, context.random)
        assert context.samples.labels[chosen.all].bincount().tolist() == [q] * trace.task.classes.seen
        asked = torch.cat([seen.indices for seen in tuning(trace)])
        assert set(asked.tolist()) == set(chosen.all.tolist())
        assert len(asked) == 2 * 12  # two epochs of three batches of 4


def test_the_tuning_starts_from_its_teacher(dataset: Path) -> None:
    """Without batch statistics the first step's distillation is 0; it stays no longer than that."""
    config = tiny_runs.config(dataset, method="eeil", task_sizes=(3, 1, 2), memory=9, epochs=4, batch=64, norm="group")
    for distil in ("new", "all"):
        options = {"balanced_distil": distil, "balanced_lr": 0.1}
        last = run(config.model_copy(update={"options": options})).tasks[-1].loss
        assert len(last["balanced"]["kd"]) == 3
        assert last["balanced"]["kd"][0] == pytest.approx(0, abs=1e-9)
        assert last["balanced"]["kd"][1] > 1e-6


def test_the_tunings_teacher_is_the_model_after_the_main_phase(traces: tuple[TaskTrace, ...]) -> None:
    """It knows the new classes, and it is not the model of the task before."""
    for trace in traces[1:]:
        for seen in trace.calls:
            (view,) = seen.teachers.values()
            tuned = seen.phase.name == "balanced"
            assert view.output.logits.shape[1] == (trace.task.classes.seen if tuned else trace.task.classes.old)


@pytest.mark.parametrize("batch", [4, 64])
def test_one_exemplar_a_class(dataset: Path, batch: int) -> None:
    """Tuning has an image of each class, at the least one old and one new: never a batch of one image."""
    config = tiny_runs.config(dataset, method="eeil", task_sizes=(1, 1, 4), memory_per_class=1, epochs=2, batch=batch)
    assert [len(task.loss["balanced"]["ce"]) for task in run(config).tasks[1:]] == [2, 2]
