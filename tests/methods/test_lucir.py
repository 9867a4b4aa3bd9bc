from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import oracles
import tiny_runs
from followed_methods import IMAGES, follow, plan_for
from ssil.core.classes import ClassTable
from ssil.learning.batches import Mixed, Pool
from ssil.learning.engine import start
from ssil.learning.method import Phase, Stage, Term
from ssil.learning.registry import configure
from ssil.learning.snapshot import Scorer, Step, TaskState, TeacherOutput
from ssil.nn.heads import CosineHead
from ssil.nn.network import Output

CLASSES = ClassTable(("?",) * 7, (0, 3, 5, 7))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("lucir") / "patterns.npz", IMAGES)


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def step(labels: list[int], classes: ClassTable = CLASSES) -> tuple[Step, Tensor]:
    """A batch with features of 4 numbers and a head of scale 3; and the teacher's features."""
    head = CosineHead(4).double()
    head.weight.data, head.scale.data = draw(classes.seen, 4, seed=1), torch.tensor(3.0, dtype=torch.float64)
    features, old = draw(len(labels), 4).requires_grad_(), draw(len(labels), 4, seed=2)
    output, view = Output(head(features), features), TeacherOutput(Output(old[:, :0], old), old[:, :0])
    return Step(torch.tensor(labels), output, classes, {"old": view}, torch.ones(0), head, Scorer()), old


def terms(batch: Step, **options: Any) -> dict[str, Term]:
    main = configure("lucir", options=options).method.plan(CLASSES)[1]
    assert isinstance(main, Phase)
    return main.loss(batch)


def test_the_loss_against_loops() -> None:
    labels = [0, 6, 4, 5, 2]
    batch, old = step(labels)
    head = batch.head
    assert isinstance(head, CosineHead)
    features, rows = oracles.rows(batch.output.features.detach()), oracles.rows(head.weight.detach())
    found = terms(batch)
    logits = [oracles.cosine_logits(feature, rows, 3.0) for feature in features]
    cosines = [oracles.cosine_logits(feature, rows, 1.0) for feature in features]
    ce = [oracles.cross_entropy(scores, label) for scores, label in zip(logits, labels, strict=True)]
    assert found["ce"].values.tolist() == pytest.approx(ce)
    weight = 10 * sqrt(5 / 2)
    drift = [weight * (1 - oracles.cosine(a, b)) for a, b in zip(features, oracles.rows(old), strict=True)]
    assert found["less_forget"].values.tolist() == pytest.approx(drift)
    ranking = [oracles.margin_ranking(cosines[i], labels[i], 5, 0.5, 2) for i in (0, 2, 4)]
    assert found["ranking"].values.tolist() == pytest.approx(ranking)
    assert [term.divisor for term in found.values()] == [5, 5, 3]


def test_without_an_old_sample_the_ranking_is_nothing() -> None:
    assert terms(step([5, 6])[0])["ranking"].values.tolist() == []


@pytest.mark.parametrize(("leaks", "reached"), [(False, False), (True, True)])
def test_the_ranking_reaches_the_scale_only_if_asked_to(leaks: bool, reached: bool) -> None:
    batch, _ = step([0, 1, 2])
    value = terms(batch, ranking_moves_scale=leaks)["ranking"].values.sum()
    (gradient,) = torch.autograd.grad(value, batch.head.get_parameter("scale"), allow_unused=True)
    assert (gradient is not None and bool(gradient)) == reached
    plain = terms(batch)["ranking"].values.sum()
    torch.testing.assert_close(value, plain)


@pytest.mark.parametrize(("task", "weight"), [(2, 10.0), (10, 30.0)])
def test_less_forget_weighs_more_with_every_task(task: int, weight: float) -> None:
    """lambda_t = 10 * sqrt(C_{t-1} / m): with ten equal tasks sqrt(1) in the second, sqrt(9) in the tenth."""
    classes = ClassTable(("?",) * 4 * task, tuple(range(0, 4 * task + 1, 4)))
    batch, old = step([0, 1], classes)
    distance = 1 - torch.nn.functional.cosine_similarity(batch.output.features, old)
    torch.testing.assert_close(terms(batch)["less_forget"].values, weight * distance)


def test_a_single_new_class_is_not_held_back() -> None:
    batch, old = step([0, 1], ClassTable(("?",) * 6, (0, 5, 6)))
    distance = 1 - torch.nn.functional.cosine_similarity(batch.output.features, old)
    torch.testing.assert_close(terms(batch)["less_forget"].values, distance)
    torch.testing.assert_close(terms(batch, min_group=1)["less_forget"].values, 10 * sqrt(5) * distance)


def test_old_rows_stand_still_and_all_else_learns(dataset: Path) -> None:
    traces = follow("lucir", dataset)
    for before, after in pairwise(traces):
        old, new = before.snapshot.network.head, after.snapshot.network.head
        assert torch.equal(new.weight[: old.classes], old.weight)
        assert not torch.equal(new.get_parameter("scale"), old.get_parameter("scale"))
        bodies = [trace.snapshot.network.backbone.state_dict().values() for trace in (before, after)]
        assert not any(torch.equal(a, b) for a, b in zip(*bodies, strict=True) if a.is_floating_point())


def test_new_rows_start_at_the_mean_direction_of_their_training_images(dataset: Path) -> None:
    """Under the old model, test transform; as long as old rows are on average."""
    plan, traces = plan_for("lucir", dataset, precision="64-true"), follow("lucir", dataset)
    context, task = plan.context, plan.stream.tasks[1]
    teacher = traces[0].snapshot
    teacher.network.double()
    imprint = plan.configured.method.plan(task.classes)[0]
    assert isinstance(imprint, Stage)
    progress = start(plan.configured.method, teacher, task, context)

    pool = Pool(task.indices, traces[1].memory.indices, context.samples.labels)
    imprint.run(
        TaskState(
            progress.network,
            progress.scorers,
            task.classes,
            pool,
            teacher,
            context.random,
            context.outputs,
        )
    )
    rows = progress.network.head.weight.detach()
    (label,) = range(task.classes.old, task.classes.seen)
    images = context.transform.test(context.samples.images.fetch(task.indices), torch.float64)
    features = [oracles.unit(row) for row in oracles.rows(teacher.network(images).features.detach())]
    mean = [sum(column) / len(features) for column in zip(*features, strict=True)]
    length = sum(row.norm().item() for row in rows[:label]) / label
    assert rows[label].tolist() == pytest.approx([length * value for value in oracles.unit(mean)])
    assert torch.equal(rows[:label], teacher.network.head.weight)


def test_the_papers_settings() -> None:
    configured = configure("lucir")
    stage, main = configured.method.plan(CLASSES)
    assert (stage.name, main.name) == ("imprint", "main")
    assert isinstance(main, Phase)
    assert (main.schedule.epochs, main.schedule.milestones, main.schedule.lr[0]) == (90, (30, 60), 0.1)
    assert main.batches == Mixed(128)
    (first,) = configured.method.plan(ClassTable(("?",) * 3, (0, 3)))
    assert isinstance(first, Phase)
    assert not first.teachers
    assert not configured.method.final_relu
    assert configure("lucir", "official").options["ranking_moves_scale"]
