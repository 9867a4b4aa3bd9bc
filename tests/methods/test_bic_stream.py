"""BiC followed through a small stream."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import oracles
import tiny_runs
from followed_methods import IMAGES, TaskTrace, copied, follow, plan_for
from ssil.benchmark.run_setup import RunSetup
from ssil.learning.batches import Pool
from ssil.learning.engine import learn, start
from ssil.learning.memory import Memory, by_class, random_selection, update
from ssil.learning.method import Method, Phase, Stage
from ssil.learning.snapshot import MAIN, Scorer, Snapshot
from ssil.learning.task import Progress
from ssil.learning.training_subsets import hold_out_per_class
from ssil.methods.bic import Correction
from ssil.nn.network import Output

ORIGINAL: dict[str, Any] = {"bias_lr": 0.1, "bias_momentum": 0.9, "beta_penalty": 0.1}


def numbers(scorer: Scorer) -> tuple[float, float]:
    assert isinstance(scorer, Correction)
    return scorer.alpha.item(), scorer.beta.item()


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("bic") / "patterns.npz", IMAGES)


@pytest.fixture(scope="module")
def traces(dataset: Path) -> tuple[TaskTrace, ...]:
    return follow("bic", dataset, **ORIGINAL)


def test_the_first_task_is_the_joint_models(traces: tuple[TaskTrace, ...], dataset: Path) -> None:
    mine, joint = copied(traces[0].snapshot), copied(follow("joint", dataset)[0].snapshot)
    assert all(torch.equal(mine[name], joint[name]) for name in joint)
    assert numbers(traces[0].snapshot.scorers[MAIN]) == (1.0, 0.0)


def test_the_teacher_of_the_second_task_is_uncorrected(traces: tuple[TaskTrace, ...]) -> None:
    """That of the third has the second's correction, on the second's block alone."""
    second, third = ([view for seen in trace.calls for view in seen.teachers.values()] for trace in traces[1:])
    assert second
    assert all(torch.equal(view.scores, view.output.logits) for view in second)
    alpha, beta = numbers(traces[1].snapshot.scorers[MAIN])
    assert (alpha, beta) != (1.0, 0.0)
    assert third
    for view in third:
        raw = view.output.logits
        assert torch.allclose(view.scores, torch.cat([raw[:, :3], alpha * raw[:, 3:] + beta], 1))


def test_held_out_images_are_not_trained_on(traces: tuple[TaskTrace, ...], dataset: Path) -> None:
    """And each epoch of the correction shows all of them, in an incomplete batch too."""
    plan = plan_for("bic", dataset)
    for trace in traces[1:]:
        pool = Pool(trace.task.indices, trace.memory.indices, plan.context.samples.labels)
        held = hold_out_per_class(pool, trace.task.classes, plan.context.random, 0.1)
        main = [seen for seen in trace.calls if seen.phase.name == "main"]
        assert main
        assert not torch.isin(torch.cat([seen.indices for seen in main]), held.all).any()
        bias = [seen.labels for seen in trace.calls if seen.phase.name == "bias"]
        expected = pool.labels[held.all].sort().values
        epochs = torch.cat(bias).view(4, len(held.all))
        assert all(torch.equal(epoch.sort().values, expected) for epoch in epochs)


def first_task(plan: RunSetup) -> tuple[Snapshot, Memory]:
    task, context = plan.stream.tasks[0], plan.context
    snapshot = learn(plan.configured.method, None, Memory(), task, context)
    arrived = by_class(task.indices, context.samples.labels)
    return snapshot, update(Memory(), arrived, task.classes, plan.budget, random_selection(context.random))


def kept(method: Method) -> Method:
    """Keeps the model between training and correction."""
    return replace(method, plan=lambda classes: tuple(map(_kept, method.plan(classes))))


def _kept(part: Phase | Stage) -> Phase | Stage:
    return replace(part, keep_as="before") if isinstance(part, Phase) and part.name == "main" else part


@pytest.fixture(scope="module")
def easy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("bic") / "easy.npz", [12] * 6)


def easy_plan(easy: Path, epochs: int = 3, batch: int = 64, **options: Any) -> RunSetup:
    length = {"epochs": epochs, "later_epochs": epochs, "batch": batch}
    return plan_for("bic", easy, task_sizes=(4, 2), memory=30, precision="64-true", options=options, **length)


def test_the_correction_leaves_the_network_alone(easy: Path) -> None:
    """Bit for bit, batch norm's statistics too; the last correction is no start for the next, only the teacher's."""
    plan = easy_plan(easy, bias_lr=1e-9)
    snapshot, memory = first_task(plan)
    snapshot.scorers[MAIN].restore({"alpha": torch.tensor(5.0), "beta": torch.tensor(3.0)})
    method, task = kept(plan.configured.method), plan.stream.tasks[1]
    progress = start(method, snapshot, task, plan.context)
    learnt = learn(method, snapshot, memory, task, plan.context, progress)
    before, after = copied(progress.kept["before"]), copied(learnt)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert numbers(progress.kept["before"].scorers[MAIN]) == (1.0, 0.0)
    assert numbers(learnt.scorers[MAIN]) == pytest.approx((1.0, 0.0), abs=1e-6)
    assert numbers(learnt.scorers[MAIN]) != (1.0, 0.0)
    assert numbers(snapshot.scorers[MAIN]) == (5.0, 3.0)


def biased(plan: RunSetup) -> tuple[Progress, Snapshot, Tensor, Tensor]:
    """The second task with new scores 6 too high: before and after the correction alone, held-out logits and labels."""
    snapshot, memory = first_task(plan)
    task, context = plan.stream.tasks[1], plan.context
    trained = learn(plan.configured.method, snapshot, memory, task, context)
    only = replace(plan.configured.method, plan=lambda classes: plan.configured.method.plan(classes)[2:])
    progress = start(only, snapshot, task, context)
    progress.network = trained.network
    assert isinstance(trained.network.head.bias, Tensor)
    trained.network.head.bias[task.classes.old :] += 6.0
    learnt = learn(only, snapshot, memory, task, context, progress)
    held = hold_out_per_class(
        Pool(task.indices, memory.indices, context.samples.labels), task.classes, context.random, 0.1
    ).all
    return progress, learnt, context.outputs(learnt.network, held).logits, context.samples.labels[held]


def test_two_numbers_mend_a_bias(easy: Path) -> None:
    """Held-out images of old classes, all taken for new ones, come back."""
    _, learnt, raw, labels = biased(easy_plan(easy, 12, 8, bias_epochs=100, **ORIGINAL))
    scores = learnt.scores(Output(raw, raw[:, :0]))
    before, after = ((values.argmax(1) == labels).double().mean().item() for values in (raw, scores))
    assert before < 0.5
    assert after > before + 0.3
    assert numbers(learnt.scorers[MAIN])[1] < 0


def test_the_correction_is_gradient_descent_by_loops(easy: Path) -> None:
    """Three epochs of one batch: no momentum, no decay, the rate of the schedule, from alpha = 1 and beta = 0."""
    plan = easy_plan(easy, bias_epochs=3, bias_lr=0.05)
    progress, learnt, raw, labels = biased(plan)
    rows, old = oracles.rows(raw), plan.stream.tasks[1].classes.old

    def loss(pair: list[float]) -> float:
        scores = [oracles.corrected(row, old, *pair) for row in rows]
        values = [oracles.cross_entropy(row, label) for row, label in zip(scores, labels.tolist(), strict=True)]
        return math.fsum(values) / len(rows)

    pair, losses = [1.0, 0.0], []
    for rate in (0.05, 0.005, 0.0005):
        losses.append(loss(pair))
        slopes = oracles.slopes(loss, pair)
        pair = [value - rate * slope for value, slope in zip(pair, slopes, strict=True)]
    assert list(numbers(learnt.scorers[MAIN])) == pytest.approx(pair, abs=1e-9)
    assert progress.losses["bias"]["ce"] == pytest.approx(losses)


def test_official_may_have_nothing_to_correct_with(dataset: Path) -> None:
    """A tenth of nine exemplars: no step, no correction, and all images are trained on."""
    for trace in follow("bic", dataset, validation="official")[1:]:
        assert {seen.phase.name for seen in trace.calls} == {"main"}
        assert numbers(trace.snapshot.scorers[MAIN]) == (1.0, 0.0)


def test_original_holds_out_in_the_first_task(dataset: Path) -> None:
    first = follow("bic", dataset, validation="original")[0]
    plan = plan_for("bic", dataset)
    pool = Pool(first.task.indices, first.task.indices[:0], plan.context.samples.labels)
    held = hold_out_per_class(pool, first.task.classes, plan.context.random, 0.1).all
    assert len(held) > 0
    assert not torch.isin(torch.cat(first.fetched), held).any()
