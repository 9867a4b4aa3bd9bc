import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import oracles
import tiny_runs
from followed_methods import TaskTrace, copied, follow, plan_for
from ssil.benchmark.runner import run
from ssil.core.classes import ClassTable
from ssil.learning import stages
from ssil.learning.batches import Mixed
from ssil.learning.engine import learn, start
from ssil.learning.method import Phase, Term
from ssil.learning.registry import configure
from ssil.learning.snapshot import Scorer, Snapshot, Step, TeacherOutput
from ssil.learning.task import Progress, ProgressReport
from ssil.nn.heads import LinearHead
from ssil.nn.network import Output
from task_ends import table

CLASSES = table(2, 1, 3)
COUNTS = (2, 5, 3, 9, 7, 4)
LABELS = torch.tensor([0, 2, 1, 5, 3, 5, 4])


def phases(classes: ClassTable, profile: str = "paper", **options: Any) -> dict[str, Phase]:
    parts = configure("uw", profile, options=options).method.plan(classes)
    return {part.name: part for part in parts if isinstance(part, Phase)}


def draw(*shape: int, seed: int = 0) -> Tensor:
    return 3 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def terms(
    phase: Phase,
    student: Tensor,
    labels: Tensor = LABELS,
    classes: ClassTable = CLASSES,
    counts: tuple[int, ...] = COUNTS,
    **teachers: Tensor,
) -> dict[str, Term]:
    views = {name: TeacherOutput(Output(teachers[name], draw(0)), teachers[name]) for name in phase.teachers}
    output = Output(student, draw(0))
    return phase.loss(Step(labels, output, classes, views, torch.tensor(counts), LinearHead(1), Scorer()))


def means(parts: Mapping[str, Term]) -> dict[str, float]:
    return {name: float(term.values.detach().sum() / max(1, term.divisor)) for name, term in parts.items()}


@pytest.mark.parametrize(("profile", "momentum"), [("paper", 0.9), ("official", 0.0)])
def test_the_plan_of_the_paper(profile: str, momentum: float) -> None:
    """Of a budget of 100 epochs: 80, 40/70, and 20, 0.01, 10/15 for the head."""
    (first,) = phases(table(10), profile).values()
    c, main, balanced = phases(table(10, 10), profile).values()
    assert [first.name, c.name, main.name, balanced.name] == ["main", "teacher_c", "main", "balanced"]
    for phase, epochs, milestones in (
        (first, 100, (40, 80)),
        (c, 100, (40, 80)),
        (main, 80, (40, 70)),
        (balanced, 20, (10, 15)),
    ):
        assert (phase.schedule.epochs, phase.schedule.milestones) == (epochs, milestones)
        rate = 0.01 if phase is balanced else 0.1
        assert phase.schedule.lr == pytest.approx((rate, rate / 10, rate / 100))
        assert phase.schedule.momentum == (momentum if phase is balanced else 0.9)
        assert phase.schedule.weight_decay == 1e-4
        assert phase.batches == Mixed(128)
        assert phase.trained == ("head" if phase is balanced else "network")
    assert [phase.teachers for phase in (first, c, main, balanced)] == [(), (), ("old", "c"), ("old", "c")]
    assert [phase.start for phase in (c, main, balanced)] == ["previous", "previous", "current"]
    assert [phase.keep_as for phase in (first, c, main, balanced)] == [None, "c", None, None]
    assert [phase.project for phase in (c, main, balanced)] == [stages.keep_old_rows, None, None]


@pytest.mark.parametrize(
    ("training", "main", "balanced"),
    [
        ({"epochs": 8}, (6, (3, 5)), (2, (1, 2))),
        ({"epochs": 200, "milestones": (120, 160, 180)}, (160, (120, 160, 160)), (40, (20, 30))),
        ({"epochs": 100, "later_epochs": 50}, (40, (20, 35)), (10, (5, 8))),
        ({"epochs": 1}, (1, (1, 1)), (1, (1, 1))),
        ({"epochs": 10, "milestones": ()}, (8, ()), (2, (1, 2))),
    ],
)
def test_shorter_and_longer_budgets(training: dict[str, Any], main: tuple[int, Any], balanced: tuple[int, Any]) -> None:
    parts = configure("uw", training=training).method.plan(table(2, 2))
    schedules = {part.name: part.schedule for part in parts if isinstance(part, Phase)}
    assert (schedules["main"].epochs, schedules["main"].milestones) == main
    assert (schedules["balanced"].epochs, schedules["balanced"].milestones) == balanced
    assert schedules["teacher_c"] == configure("uw", training=training).training.schedule(2)


def test_the_tuning_may_be_chosen() -> None:
    main, balanced = list(phases(table(2, 2), tuning_epochs=40, tuning_lr=0.2, tuning_momentum=0.5).values())[1:]
    assert (balanced.schedule.epochs, balanced.schedule.milestones, balanced.schedule.momentum) == (40, (20, 30), 0.5)
    assert balanced.schedule.lr == pytest.approx((0.2, 0.02, 0.002))
    assert main.schedule == phases(table(2, 2))["main"].schedule


def test_the_plan_without_teacher_c() -> None:
    assert {name: phase.teachers for name, phase in phases(table(2, 2), use_teacher_c=False).items()} == {
        "main": ("old",),
        "balanced": ("old",),
    }


def test_a_task_of_one_class_has_no_teacher_c() -> None:
    """Its softmax over one class would be 1 whatever it learns; the share of the old classes' distillation stays."""
    assert list(phases(table(3, 1))) == ["main", "balanced"]
    student, teacher = draw(7, 4), draw(7, 3, seed=1)
    labels = LABELS.clamp(max=3)
    parts = means(terms(phases(table(3, 1))["main"], student, labels, table(3, 1), (1, 1, 1, 4), old=teacher))
    kd = [oracles.gkd(s, z, 2.0) for s, z in zip(oracles.rows(student), oracles.rows(teacher), strict=True)]
    assert parts["kd_old"] == pytest.approx(4 * 3 / 4 * math.fsum(kd) / 7)
    assert parts.keys() == {"ce", "kd_old"}


@pytest.mark.parametrize("confidence", [1.0, 0.3])
def test_teacher_c_learns_new_classes_and_to_be_unsure_of_others(confidence: float) -> None:
    """Each group has a mean of its own: four new images, three exemplars."""
    student = draw(7, 6).requires_grad_()
    parts = terms(phases(CLASSES, confidence=confidence)["teacher_c"], student)
    own, unsure = [], []
    for scores, label in zip(oracles.rows(student.detach()), LABELS.tolist(), strict=True):
        if label >= 3:
            own.append(oracles.cross_entropy(scores[3:], label - 3))
        else:
            unsure.append(confidence * oracles.unsure(scores[3:]))
    assert means(parts) == pytest.approx({"ce": math.fsum(own) / 4, "confidence": math.fsum(unsure) / 3}, rel=1e-9)
    torch.stack([term.values.sum() for term in parts.values()]).sum().backward()
    assert student.grad is not None
    assert not student.grad[:, :3].any()
    assert student.grad[:, 3:].all()


def test_teacher_c_by_hand() -> None:
    """Of two new classes' (0, log 3), which is (1/4, 3/4), CE of the second is log 4/3.

    KL((1/2, 1/2) || it) is 1/2 log(1/2 / 1/4) + 1/2 log(1/2 / 3/4) = 1/2 log 2 + 1/2 log 2/3 = log 2 - 1/2 log 3.
    """
    student = torch.tensor([[5.0, 0.0, math.log(3)]] * 2, dtype=torch.float64)
    phase = phases(table(1, 2))["teacher_c"]
    parts = means(terms(phase, student, torch.tensor([2, 0]), table(1, 2), (1, 1, 1)))
    assert parts == pytest.approx({"ce": math.log(4 / 3), "confidence": math.log(2) - math.log(3) / 2})


@pytest.mark.parametrize(("labels", "empty"), [([3, 4], "confidence"), ([0, 1], "ce")])
def test_a_group_that_a_batch_lacks_counts_as_nothing(labels: list[int], empty: str) -> None:
    parts = terms(phases(CLASSES)["teacher_c"], draw(2, 6), torch.tensor(labels))
    assert (len(parts[empty].values), parts[empty].divisor) == (0, 0)
    assert all(value > 0 for name, value in means(parts).items() if name != empty)


@pytest.mark.parametrize("name", ["main", "balanced"])
@pytest.mark.parametrize(
    ("options", "factor", "with_c"),
    [
        ({}, 4.0, True),
        ({"kd_tau_sq": False}, 1.0, True),
        ({"temperature": 3.0}, 9.0, True),
        ({"use_teacher_c": False}, 4.0, False),
    ],
)
def test_the_loss(name: str, options: dict[str, Any], factor: float, with_c: bool) -> None:
    """In the main phase all weights are 1; without C the distillation of old classes has no other to share with."""
    student, old, c = draw(7, 6), draw(7, 3, seed=1), draw(7, 6, seed=2)
    parts = terms(phases(CLASSES, **options)[name], student, old=old, c=c)
    tau = options.get("temperature", 2.0)
    totals = {"ce": 0.0, "kd_old": 0.0, "kd_c": 0.0}
    rows = zip(*map(oracles.rows, (student, old, c)), LABELS.tolist(), strict=True)
    for scores, before, expert, label in rows:
        values = {
            "ce": (oracles.cross_entropy(scores, label), 0, 6),
            "kd_old": (factor * (3 / 6 if with_c else 1) * oracles.gkd(scores[:3], before, tau), 0, 3),
            "kd_c": (factor * 3 / 6 * oracles.gkd(scores[3:], expert[3:], tau), 3, 6),
        }
        for part, (value, first, last) in values.items():
            weight = oracles.class_weight(label, COUNTS, first, last) if name == "balanced" else 1.0
            totals[part] += weight * value / 7
    if not with_c:
        del totals["kd_c"]
    assert means(parts) == pytest.approx(totals, rel=1e-9)


def weights(counts: tuple[int, ...], classes: ClassTable) -> tuple[Tensor, dict[str, Tensor]]:
    """The label of every training image, and what each term of the tuning multiplies its value by."""
    labels = torch.repeat_interleave(torch.tensor(counts))
    ramp = torch.arange(classes.seen, dtype=torch.float64).expand(len(labels), -1)
    teachers = {"old": ramp[:, : classes.old], "c": ramp}
    both = (phases(classes)[name] for name in ("main", "balanced"))
    plain, balanced = (terms(phase, torch.zeros_like(ramp), labels, classes, counts, **teachers) for phase in both)
    return labels, {name: balanced[name].values / plain[name].values for name in plain}


def test_weights_by_hand() -> None:
    """Old classes of 2 and 6 images, new ones of 12 and 4: N = 24 of 4 classes, 8 of 2, 16 of 2.

    CE: 24 / (4 n) = 3, 1, 1/2, 3/2. GKD: 8 / (2 n) = 2, 2/3, and 1 for new images. C: 16 / (2 n) = 2/3, 2, and 1 for
    old images.
    """
    labels, by_term = weights((2, 6, 12, 4), table(2, 2))
    for name, expected in (("ce", (3, 1, 1 / 2, 3 / 2)), ("kd_old", (2, 2 / 3, 1, 1)), ("kd_c", (1, 1, 2 / 3, 2))):
        torch.testing.assert_close(by_term[name], torch.tensor(expected, dtype=torch.float64)[labels])


sizes = st.lists(st.integers(1, 9), min_size=2, max_size=4)


@given(sizes, sizes)
@settings(max_examples=25, deadline=None)
def test_every_class_has_the_same_total_weight(old: list[int], new: list[int]) -> None:
    """The weights of all images add up to their number: over all classes, over the old ones, over the new ones."""
    counts, classes = (*old, *new), table(len(old), len(new))
    labels, by_term = weights(counts, classes)
    for name, first, last in (("ce", 0, classes.seen), ("kd_old", 0, classes.old), ("kd_c", classes.old, classes.seen)):
        totals = torch.zeros(classes.seen, dtype=torch.float64).index_add(0, labels, by_term[name])
        images = sum(counts[first:last])
        assert totals[first:last].tolist() == pytest.approx([images / (last - first)] * (last - first))
        assert float(totals.sum()) == pytest.approx(sum(counts))
        outside = (labels < first) | (labels >= last)
        assert by_term[name][outside].tolist() == pytest.approx([1.0] * int(outside.sum()))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("uw") / "patterns.npz", (8, 6, 8, 7, 8, 5))


@pytest.fixture(scope="module")
def traces(dataset: Path) -> tuple[TaskTrace, ...]:
    """Three, one and two classes, 9 exemplars in all."""
    return follow("uw", dataset)


def again(trace: TaskTrace, dataset: Path) -> tuple[dict[str, dict[str, Tensor]], dict[str, Snapshot]]:
    """The trace once more: the network's state after each phase, and the teachers that were kept."""
    plan = plan_for("uw", dataset)
    method, states = plan.configured.method, dict[str, dict[str, Tensor]]()
    progress = start(method, trace.teacher, trace.task, plan.context)

    def watch(progress: Progress, pace: ProgressReport) -> None:
        states[pace.phase] = {name: value.clone() for name, value in progress.network.state_dict().items()}

    learn(method, trace.teacher, trace.memory, trace.task, plan.context, progress, watch)
    return states, progress.kept


def test_tuning_leaves_the_backbone_and_its_buffers(traces: tuple[TaskTrace, ...], dataset: Path) -> None:
    for trace in traces[1:]:
        states, _ = again(trace, dataset)
        main, balanced = states["main"], states["balanced"]
        changed = {name for name in main if not torch.equal(main[name], balanced[name])}
        assert changed == {"head.weight", "head.bias"}
        assert all(torch.equal(balanced[name], value) for name, value in copied(trace.snapshot).items())


def test_teacher_c_trains_its_new_rows_and_the_backbone(traces: tuple[TaskTrace, ...], dataset: Path) -> None:
    last = traces[-1]
    _, kept = again(last, dataset)
    before, c = last.teacher_before, kept["c"].network.state_dict()
    for name in ("head.weight", "head.bias"):
        assert torch.equal(c[name][:4], before[name])
    assert not any(torch.equal(c[name], before[name]) for name in before if "conv" in name)


def test_teachers_stay_the_same_for_the_tuning(traces: tuple[TaskTrace, ...]) -> None:
    """The model of the task before, and C, which knows all classes; C itself has no teacher."""
    for trace in traces[1:]:
        for seen in trace.calls:
            columns = {name: view.output.logits.shape[1] for name, view in seen.teachers.items()}
            both = {"old": trace.task.classes.old, "c": trace.task.classes.seen}
            expected = both if trace.task.classes.new > 1 else {"old": both["old"]}
            assert columns == ({} if seen.phase.name == "teacher_c" else expected)


def test_the_main_phase_starts_from_the_old_model_again(dataset: Path) -> None:
    """Without batch statistics its first step has nothing to distil from the old model."""
    settings = {"epochs": 3, "batch": 64, "norm": "group", "precision": "64-true"}
    config = tiny_runs.config(dataset, method="uw", tasks=2, memory=9, **settings)
    losses = run(config).tasks[-1].loss
    assert losses["main"]["kd_old"][0] == pytest.approx(0, abs=1e-9)
    assert losses["main"]["kd_old"][1] > 1e-6
    assert losses["main"]["kd_c"][0] > 1e-6


def test_one_exemplar_a_class(dataset: Path) -> None:
    config = tiny_runs.config(dataset, method="uw", task_sizes=(1, 2, 3), memory_per_class=1, epochs=2)
    assert [len(task.loss["balanced"]["ce"]) for task in run(config).tasks[1:]] == [1, 1]


def test_a_short_main_phase_reaches_its_last_rate() -> None:
    (main,) = (
        part
        for part in configure("uw", training={"epochs": 5, "milestones": (2, 4)}).method.plan(table(2, 2))
        if part.name == "main"
    )
    assert isinstance(main, Phase)
    assert (main.schedule.epochs, main.schedule.milestones) == (4, (2, 3))
