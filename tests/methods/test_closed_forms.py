"""What the closed-form methods have in common: no order and no division into tasks changes their scores."""

from functools import partial
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import closed_forms
import task_ends
import tiny_runs
from followed_methods import IMAGES, SETTINGS
from ssil.benchmark.record import read_record
from ssil.benchmark.runner import run
from ssil.core.errors import UserError
from ssil.learning.feature_statistics import ClosedForm
from ssil.learning.registry import configure, recipes
from ssil.learning.snapshot import Snapshot, without
from ssil.nn.heads import LinearHead
from ssil.nn.network import Network, Output
from ssil.nn.resnet import Backbone

FORMS: dict[str, tuple[str, dict[str, object]]] = {
    "ncm": ("ncm", {}),
    "slda": ("slda", {}),
    "slda, fixed shrinkage": ("slda", {"shrinkage": 0.3, "power": 1.0}),
    "fecam": ("fecam", {}),
    "fecam, full": ("fecam", {"covariance": "full"}),
    "ranpac": ("ranpac", {"width": 9}),
    "ranpac, fixed penalty": ("ranpac", {"width": 9, "penalty": 0.1}),
}
SIZES = [7, 1, 4, 9, 2]
TEST = closed_forms.draw(8, closed_forms.WIDTH, seed=9)


@pytest.fixture(params=FORMS, scope="module")
def make(request: pytest.FixtureRequest) -> partial[ClosedForm]:
    method, options = FORMS[request.param]
    return partial(closed_forms.scorer, method, **options)


def compare(make: partial[ClosedForm], features: Tensor, labels: Tensor, tasks: list[Tensor]) -> None:
    """Scores after these tasks with those after one task that brings everything."""
    expected = closed_forms.scores(closed_forms.at_once(make, features, labels), TEST)
    found = closed_forms.scores(closed_forms.fitted(make, features, labels, tasks), TEST)
    arrival = list(dict.fromkeys(labels[torch.cat(tasks)].tolist()))
    torch.testing.assert_close(found, expected[:, arrival], rtol=0, atol=1e-4 * float(expected.abs().max()))


@given(seed=st.integers(0, 99), cuts=st.sets(st.integers(1, sum(SIZES) - 1)))
@settings(max_examples=40, deadline=None)
def test_any_order_and_any_tasks_give_the_same_scores(make: partial[ClosedForm], seed: int, cuts: set[int]) -> None:
    features, labels = closed_forms.images(SIZES)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    compare(make, features, labels, list(order.tensor_split(sorted(cuts))))


def test_images_one_at_a_time_give_the_same_scores(make: partial[ClosedForm]) -> None:
    features, labels = closed_forms.images(SIZES, seed=5)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    compare(make, features, labels, list(order.split(1)))


def test_more_images_than_are_added_at_a_time(make: partial[ClosedForm], monkeypatch: pytest.MonkeyPatch) -> None:
    features, labels = closed_forms.images(SIZES)
    expected = closed_forms.scores(closed_forms.at_once(make, features, labels), TEST)
    monkeypatch.setattr("ssil.learning.feature_statistics.CHUNK", 3)
    found = closed_forms.scores(closed_forms.at_once(make, features, labels), TEST)
    torch.testing.assert_close(found, expected)


def test_exemplars_are_not_counted_again(make: partial[ClosedForm]) -> None:
    features, labels = closed_forms.images([3, 3])
    output, classes = Output(features, features), task_ends.table(1, 1)
    first, second = torch.arange(3), torch.arange(3, 6)
    scorer = make()
    scorer.fit(task_ends.end(task_ends.table(1), labels, first, [], output, LinearHead(closed_forms.WIDTH)))
    scorer.fit(task_ends.end(classes, labels, second, first, output, LinearHead(closed_forms.WIDTH)))
    assert scorer.counts.sum(0).tolist() == [3, 3]


def test_classes_of_one_image_each(make: partial[ClosedForm]) -> None:
    """There is no spread to estimate, and none or all may be held back."""
    features, labels = torch.eye(3, closed_forms.WIDTH, dtype=torch.float64) + 0.1, torch.arange(3)
    made = closed_forms.at_once(make, features, labels)
    assert closed_forms.scores(made, features).argmax(1).tolist() == [0, 1, 2]


def test_statistics_of_another_backbone_are_refused(make: partial[ClosedForm]) -> None:
    features, labels = closed_forms.images([3, 3])
    made = closed_forms.at_once(make, features, labels)
    made.sums = made.sums[:, :, 1:]
    with pytest.raises(UserError, match="statistics"):
        made.add(made.embed(features), labels, 2)


def test_sums_stay_in_double_precision(make: partial[ClosedForm]) -> None:
    made = make().place(torch.device("cpu"), torch.float32)
    assert all(made.get_buffer(name).dtype == torch.float64 for name in made.float64)
    assert {made.state_dict()[name].dtype for name in made.state_dict() if name not in made.float64} == {
        torch.float32,
        torch.int64,
    }


def forgotten(made: ClosedForm, label: int) -> ClosedForm:
    classes = task_ends.table(made.counts.shape[1])
    head = LinearHead(closed_forms.WIDTH).grow(classes.seen, torch.Generator())
    left = without(Snapshot(Network(Backbone(), head), classes, {"main": made}), label).scorers["main"]
    assert isinstance(left, ClosedForm)
    return left


def test_a_forgotten_class_leaves_no_trace_where_none_is_named(make: partial[ClosedForm]) -> None:
    """Where a trace is named, it is in the matrix that all classes share, and the class has no mean any more."""
    features, labels = closed_forms.images(SIZES)
    left = forgotten(closed_forms.at_once(make, features, labels), 3)
    other, stays = closed_forms.at_once(make, features[labels != 3], _renamed(labels[labels != 3])), labels != 3
    assert torch.equal(left.counts, other.counts)
    torch.testing.assert_close(left.sums, other.sums)
    if not left.trace:
        torch.testing.assert_close(closed_forms.scores(left, TEST), closed_forms.scores(other, TEST))
    assert closed_forms.scores(left, features[stays]).shape == (int(stays.sum()), 4)


def _renamed(labels: Tensor) -> Tensor:
    return labels - (labels > 3).long()


def test_a_class_can_be_learnt_again_after_it_was_forgotten(make: partial[ClosedForm]) -> None:
    features, labels = closed_forms.images([5, 6, 7])
    left = forgotten(closed_forms.at_once(make, features, labels), 2)
    output = Output(features, features)
    left.fit(task_ends.end(task_ends.table(2, 1), labels, torch.arange(11, 18), [], output, LinearHead(6)))
    assert left.counts.sum(0).tolist() == [5, 6, 7]
    assert (closed_forms.scores(left, features).argmax(1) == labels).float().mean() > 0.6


def test_they_share_one_run_and_keep_no_image(tmp_path: Path) -> None:
    dataset = tiny_runs.patterns(tmp_path / "patterns.npz", IMAGES)
    names = [name for name in recipes() if not configure(name).method.requirements().training]
    shared = {**SETTINGS, "memory": 0, "method": ",".join(names), "out": tmp_path / "run"}
    record = run(tiny_runs.config(dataset, **shared))
    assert {*names} == {name for name, _ in FORMS.values()}
    assert all(not any(task.memory_counts) and not task.loss for task in record.tasks)
    for name in names[1:]:
        alone = run(tiny_runs.config(dataset, **{**SETTINGS, "method": name, "options": {}}))
        found = read_record(tmp_path / "run" / name)
        assert [task.top1 for task in found.tasks] == [task.top1 for task in alone.tasks]


def test_a_memory_of_0_is_refused_by_methods_that_need_exemplars(tmp_path: Path) -> None:
    dataset = tiny_runs.patterns(tmp_path / "patterns.npz", IMAGES)
    with pytest.raises(UserError, match="memory: 0 is less than one exemplar"):
        run(tiny_runs.config(dataset, **{**SETTINGS, "method": "ft", "memory": 0}))
