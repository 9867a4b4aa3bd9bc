import math
from dataclasses import fields, replace
from itertools import accumulate, pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import tiny_runs
from ssil.benchmark.run_setup import RunSetup, set_up
from ssil.core.classes import ClassTable
from ssil.core.samples import Samples
from ssil.learning import execution
from ssil.learning.evaluation import _summary, best_within_task, feature_lookup, predict, teacher_ratios
from ssil.learning.metrics import Predictions
from ssil.learning.model_state import initial_network
from ssil.learning.snapshot import Scorer, Snapshot
from ssil.nn.network import Output


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> RunSetup:
    """Seven classes, four and three, in double precision."""
    dataset = tiny_runs.patterns(tmp_path_factory.mktemp("evaluate") / "patterns.npz", [3] * 7)
    return set_up(tiny_runs.config(dataset, tasks=2, precision="64-true"))


def untrained(plan: RunSetup, task: int) -> Snapshot:
    """A network with its first weights, which knows the classes of so many tasks."""
    classes = plan.stream.tasks[task - 1].classes
    return Snapshot(initial_network(plan.configured.method, classes, plan.context).clone(), classes, {"main": Scorer()})


def scores(snapshot: Snapshot, plan: RunSetup, indices: Tensor) -> Tensor:
    images = plan.context.transform.test(plan.stream.test.images.fetch(indices), torch.float64)
    logits: Tensor = snapshot.network(images).logits
    return logits


def equal(these: Predictions, those: Predictions) -> bool:
    columns = [(getattr(these, part.name), getattr(those, part.name)) for part in fields(these)]
    return all(torch.allclose(a, b, rtol=1e-9, equal_nan=True) for a, b in columns)


def test_predictions_against_one_image_at_a_time(plan: RunSetup) -> None:
    snapshot, test = untrained(plan, 2), plan.stream.test
    indices = torch.tensor([9, 0, 27, 4])
    predictions = predict(snapshot, indices, test, plan.context)["main"]
    for row, index in enumerate(indices):
        logits = scores(snapshot, plan, index[None])[0]
        chances = (logits - logits.logsumexp(0)).exp()
        assert predictions.labels[row] == test.labels[index]
        assert predictions.top[row].tolist() == sorted(range(7), key=lambda c: -logits[c])[:5]
        assert predictions.confidence[row] == pytest.approx(chances.max().item())
        means = [values.mean().item() for values in (logits[:4], logits[4:], chances[:4], chances[4:])]
        kept = (predictions.score_old, predictions.score_new, predictions.softmax_old, predictions.softmax_new)
        assert [column[row].item() for column in kept] == pytest.approx(means)


def test_the_first_task_has_no_old_classes(plan: RunSetup) -> None:
    predictions = predict(untrained(plan, 1), torch.arange(5), plan.stream.test, plan.context)["main"]
    assert predictions.score_old.isnan().all()
    assert predictions.top.shape == (5, 4)


def test_mean_chances_add_up_to_one(plan: RunSetup) -> None:
    """Fig. 6c: C_old * old mean + C_new * new mean = 1."""
    predictions = predict(untrained(plan, 2), torch.arange(28), plan.stream.test, plan.context)["main"]
    total = 4 * predictions.softmax_old + 3 * predictions.softmax_new
    torch.testing.assert_close(total, torch.ones_like(total))


def test_labels_are_only_copied_and_tell_the_task(plan: RunSetup) -> None:
    snapshot, test = untrained(plan, 2), plan.stream.test
    blind = Samples(test.images, torch.zeros_like(test.labels))
    told, guessed = (predict(snapshot, torch.arange(28), samples, plan.context)["main"] for samples in (test, blind))
    assert equal(replace(told, labels=blind.labels, within_task=guessed.within_task), guessed)


def test_the_size_of_the_batches_does_not_matter(plan: RunSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = untrained(plan, 2)
    whole = predict(snapshot, torch.arange(28), plan.stream.test, plan.context)["main"]
    monkeypatch.setattr(execution, "CPU_BATCH", 3)
    assert equal(predict(snapshot, torch.arange(28), plan.stream.test, plan.context)["main"], whole)


def test_features_keep_the_order_of_the_indices(plan: RunSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "CPU_BATCH", 2)
    snapshot, indices = untrained(plan, 1), torch.tensor([5, 1, 3, 0, 2])
    expected = snapshot.network(tiny_runs.preprocessed(plan.context, indices)).features
    torch.testing.assert_close(feature_lookup(snapshot, indices, plan.context)(indices), expected)


def test_features_of_images_that_were_not_announced(plan: RunSetup) -> None:
    snapshot, indices = untrained(plan, 1), torch.tensor([5, 1, 4])
    expected = snapshot.network(tiny_runs.preprocessed(plan.context, indices)).features
    torch.testing.assert_close(feature_lookup(snapshot, torch.tensor([1, 2]), plan.context)(indices), expected)


@pytest.mark.parametrize(("favourite", "shares"), [(1, [1.0, 0.0]), (5, [0.0, 1.0])])
def test_teacher_ratio_counts_tasks(plan: RunSetup, favourite: int, shares: list[float]) -> None:
    snapshot = untrained(plan, 2)
    snapshot.network.head.get_parameter("bias").zero_()[favourite] = 1e6
    assert teacher_ratios(snapshot, plan.stream.tasks[1].indices, plan.context) == {"main": shares}


def test_teacher_ratios_add_up_to_one(plan: RunSetup) -> None:
    two, one = (teacher_ratios(untrained(plan, n), plan.stream.tasks[1].indices, plan.context)["main"] for n in (2, 1))
    assert sum(two) == pytest.approx(1)
    assert one == [1.0]


class Contrary(Scorer):
    """The worst is the best."""

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        return -output.logits


def test_every_scorer_has_its_own_teacher_ratio(plan: RunSetup) -> None:
    snapshot = replace(untrained(plan, 2), scorers={"main": Scorer(), "other": Contrary()})
    bias = snapshot.network.head.get_parameter("bias").zero_()
    bias[1], bias[5] = 1e6, -1e6
    ratios = teacher_ratios(snapshot, plan.stream.tasks[1].indices, plan.context)
    assert ratios == {"main": [1.0, 0.0], "other": [0.0, 1.0]}


class Picky(Scorer):
    """Rules out classes 0 and 2."""

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        return output.logits.index_fill(1, torch.tensor([0, 2]), -torch.inf)


def test_classes_that_are_ruled_out_are_not_in_the_mean_scores(plan: RunSetup) -> None:
    """They have no chance, and that counts."""
    snapshot = replace(untrained(plan, 2), scorers={"main": Picky()})
    predictions = predict(snapshot, torch.arange(28), plan.stream.test, plan.context)["main"]
    logits = scores(snapshot, plan, torch.arange(28))
    torch.testing.assert_close(predictions.score_old, logits[:, [1, 3]].mean(1))
    torch.testing.assert_close(predictions.score_new, logits[:, 4:].mean(1))
    chances = logits[:, [1, 3, 4, 5, 6]].softmax(1)
    torch.testing.assert_close(predictions.softmax_old, chances[:, :2].sum(1) / 4)
    assert not torch.isin(predictions.top, torch.tensor([0, 2])).any()


def test_the_spread_is_that_of_scores_within_their_group() -> None:
    scores = torch.tensor([[0.0, 2.0, -torch.inf, 5.0, 7.0, 12.0], [1.0, 1.0, 1.0, 3.0, 3.0, 3.0]])
    *_, spread = _summary(Scorer(), scores, old=3)
    distances = [1, 1, 3, 1, 4]  # from 1 and from 8, the class that is ruled out left aside
    assert spread.tolist() == pytest.approx([math.sqrt(sum(d * d for d in distances) / 5), 0.0])
    *_, first = _summary(Scorer(), scores[:, 3:], old=0)
    assert first.tolist() == pytest.approx([math.sqrt(26 / 3), 0.0])


def literal_best_within_task(scores: list[float], label: int, tasks: list[list[int]]) -> int:
    """The class of the highest score in the task that has the label, the first if several have it."""
    if not (found := [classes for classes in tasks if label in classes]):
        return -1
    (own,) = found
    best = own[0]
    for c in own[1:]:
        if scores[c] > scores[best]:
            best = c
    return best


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.integers(0, 99))
def test_the_best_class_of_the_own_task_by_its_literal_form(sizes: list[int], seed: int) -> None:
    """Also with tasks that brought no class, and with classes that a scorer rules out."""
    sizes = [1 + sizes[0], *sizes[1:]]
    bounds = (0, *accumulate(sizes))
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(20, bounds[-1], generator=generator).round(decimals=1)
    scores[torch.rand(scores.shape, generator=generator) < 0.2] = -torch.inf
    labels = torch.randint(bounds[-1] + 1, (20,), generator=generator)
    tasks = [list(range(*pair)) for pair in pairwise(bounds)]
    found = best_within_task(scores, labels, ClassTable(("?",) * bounds[-1], bounds))
    expected = [literal_best_within_task(*pair, tasks) for pair in zip(scores.tolist(), labels.tolist(), strict=True)]
    assert found.tolist() == expected
