from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import oracles
import task_ends
import tiny_runs
from followed_methods import IMAGES, SETTINGS, follow, plan_for
from ssil.benchmark.record import read_record
from ssil.benchmark.runner import run
from ssil.core.classes import ClassTable
from ssil.core.randomness import Randomness
from ssil.learning import memory as memories
from ssil.learning.batches import Mixed
from ssil.learning.memory import GrowingBudget, Memory, herding, random_selection
from ssil.learning.method import Phase
from ssil.learning.registry import configure
from ssil.learning.snapshot import MAIN, Scorer, Snapshot, Step, TeacherOutput
from ssil.methods.icarl import NearestMean
from ssil.nn.heads import LinearHead
from ssil.nn.network import Output

THREE = task_ends.table(3, 1, 2)


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def phase(classes: ClassTable, profile: str = "paper", **options: Any) -> Phase:
    (only,) = configure("icarl", profile, options=options).method.plan(classes)
    assert isinstance(only, Phase)
    return only


# ---- the plan


@pytest.mark.parametrize("profile", ["paper", "official"])
def test_the_papers_schedule(profile: str) -> None:
    for classes in (task_ends.table(3), THREE):
        main = phase(classes, profile)
        assert (main.schedule.epochs, main.schedule.milestones) == (60, (20, 30, 40, 50))
        assert main.schedule.lr == pytest.approx([0.1 * 0.2**n for n in range(5)])
        assert main.batches == Mixed(128)
        assert main.teachers == (("old",) if classes.old else ())
    configured = configure("icarl", profile)
    assert configured.options["kd_tau_sq"] == (profile == "official")
    assert configured.training.new_head_init == ("zero" if profile == "official" else "default")
    assert not configured.training.lr_by_task


def test_the_networks_own_answer_is_an_extra_scorer() -> None:
    made = {name: make() for name, make in configure("icarl").method.scorers.items()}
    assert {name: type(scorer) for name, scorer in made.items()} == {MAIN: NearestMean, "cnn": Scorer}


# ---- the loss


def step(student: Tensor, labels: Tensor, classes: ClassTable, teacher: Tensor | None) -> Step:
    output = Output(student, student)
    teachers = {} if teacher is None else {"old": TeacherOutput(Output(teacher, teacher), -teacher)}
    return Step(labels, output, classes, teachers, torch.ones(classes.seen), LinearHead(1), Scorer())


@pytest.mark.parametrize(("tau_sq", "factor"), [(False, 1.0), (True, 9.0)])
def test_cross_entropy_and_task_wise_distillation(tau_sq: bool, factor: float) -> None:
    student, teacher, labels = draw(5, 6), draw(5, 4, seed=1), torch.tensor([0, 3, 5, 4, 2])
    terms = phase(THREE, kd_tau_sq=tau_sq, temperature=3.0).loss(step(student, labels, THREE, teacher))
    assert {name: term.divisor for name, term in terms.items()} == {"ce": 5, "kd": 5}
    for row in range(5):
        mine, theirs = oracles.rows(student)[row], oracles.rows(teacher)[row]
        assert terms["ce"].values[row].item() == pytest.approx(oracles.cross_entropy(mine, int(labels[row])))
        expected = factor * oracles.tkd(mine, theirs, [0, 3, 4], 3.0)
        assert terms["kd"].values[row].item() == pytest.approx(expected)


def test_distillation_over_all_old_classes_at_once() -> None:
    student, teacher, labels = draw(5, 6), draw(5, 4, seed=1), torch.tensor([0, 3, 5, 4, 2])
    kd = phase(THREE, distillation="gkd").loss(step(student, labels, THREE, teacher))["kd"]
    for row in range(5):
        expected = oracles.tkd(oracles.rows(student)[row], oracles.rows(teacher)[row], [0, 4], 2.0)
        assert kd.values[row].item() == pytest.approx(expected)


def test_the_first_task_is_plain_cross_entropy() -> None:
    student, labels = draw(4, 3), torch.tensor([0, 2, 1, 1])
    terms = phase(task_ends.table(3)).loss(step(student, labels, task_ends.table(3), None))
    assert terms.keys() == {"ce"}


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_the_originals_loss_is_its_definition(seed: int, later: bool) -> None:
    """Old outputs learn the teacher's sigmoids, whatever the label; new outputs the label."""
    classes = THREE if later else task_ends.table(6)
    student, teacher = draw(3, 6, seed=seed).requires_grad_(True), draw(3, 4, seed=seed + 1) if later else None
    labels = torch.tensor([0, 5, 4])
    (term,) = phase(classes, loss="bce").loss(step(student, labels, classes, teacher)).values()
    (gradient,) = torch.autograd.grad(term.values.sum(), student)
    for row, label in enumerate(labels.tolist()):
        targets = [float(c == label) for c in range(6)]
        if teacher is not None:
            targets[:4] = (1 / (1 + (-teacher[row]).exp())).tolist()
        scores = oracles.rows(student.detach())[row]
        assert term.values[row].item() == pytest.approx(oracles.sigmoid_cross_entropy(scores, targets))
        slopes = oracles.slopes(lambda z, targets=targets: oracles.sigmoid_cross_entropy(z, targets), scores)  # type: ignore[misc]
        assert gradient[row].tolist() == pytest.approx(slopes, abs=1e-6)
    assert term.divisor == 3


def test_no_gradient_of_the_originals_loss_for_a_student_that_agrees() -> None:
    """An image of an old class on which all sigmoids are the teacher's, and new outputs surely 'no'."""
    teacher = draw(1, 4)
    student = torch.cat([teacher, torch.full((1, 2), -99.0, dtype=torch.float64)], 1).requires_grad_(True)
    (term,) = phase(THREE, loss="bce").loss(step(student, torch.tensor([1]), THREE, teacher)).values()
    (gradient,) = torch.autograd.grad(term.values.sum(), student)
    assert gradient.abs().max() < 1e-12


# ---- nearest class mean


def fitted(features: Tensor, labels: list[int], classes: ClassTable, unit_means: bool = True) -> NearestMean:
    scorer = NearestMean(unit_means=unit_means).double()
    images = Output(features, features)
    old = [i for i, label in enumerate(labels) if label < classes.old]
    new = [i for i, label in enumerate(labels) if label >= classes.old]
    scorer.fit(task_ends.end(classes, labels, new, old, images))
    return scorer


LABELS = [0, 0, 1, 2, 2, 2, 3, 4, 5, 5]


def test_means_may_be_left_shorter_than_1() -> None:
    # (3, 4) and (4, -3) have the unit vectors (0.6, 0.8) and (0.8, -0.6): their mean is (0.7, 0.1), sqrt(0.5) long.
    features = torch.tensor([[3.0, 4.0], [4.0, -3.0]], dtype=torch.float64)
    plain, unit = (fitted(features, [0, 0], ClassTable().extend(["?"]), which).means for which in (False, True))
    torch.testing.assert_close(plain, torch.tensor([[0.7, 0.1]], dtype=torch.float64))
    torch.testing.assert_close(unit, plain / 0.5**0.5)
    assert configure("icarl", "official").options["nme_unit_means"] is False


def test_means_and_scores_are_their_definition() -> None:
    features, queries = draw(10, 4), draw(7, 4, seed=1)
    scorer = fitted(features, LABELS, THREE)
    groups = [[row for row, label in zip(oracles.rows(features), LABELS, strict=True) if label == c] for c in range(6)]
    means = list(map(oracles.class_mean, groups))
    for found, expected in zip(scorer.means.tolist(), means, strict=True):
        assert found == pytest.approx(expected)
    for found, query in zip(scorer(Output(queries, queries), THREE).tolist(), oracles.rows(queries), strict=True):
        assert found == pytest.approx(oracles.nearest_mean(query, means))


def test_a_mean_by_hand() -> None:
    """Features (3, 4) and (0, 2) are (0.6, 0.8) and (0, 1) at length 1; their mean (0.3, 0.9) has length sqrt(0.9).

    The query (1, 0) is at cosine 0.3 / sqrt(0.9) = sqrt(0.1) of it: -(2 - 2 sqrt(0.1)).
    """
    features = torch.tensor([[3.0, 4.0], [0.0, 2.0]], dtype=torch.float64)
    scorer = fitted(features, [0, 0], task_ends.table(1))
    assert scorer.means[0].tolist() == pytest.approx([0.3 / 0.9**0.5, 0.9 / 0.9**0.5])
    query = torch.tensor([[7.0, 0.0]], dtype=torch.float64)
    assert scorer(Output(query, query), task_ends.table(1)).item() == pytest.approx(-2 + 2 * 0.1**0.5)


def test_a_query_at_a_class_mean_is_of_that_class() -> None:
    scorer = fitted(draw(10, 4), LABELS, THREE)
    queries = 5 * scorer.means
    scores = scorer(Output(queries, queries), THREE)
    assert scores.argmax(1).tolist() == list(range(6))
    assert scores.diagonal().tolist() == pytest.approx([0.0] * 6, abs=1e-12)


def test_a_rotation_of_all_features_changes_nothing() -> None:
    rotation = torch.linalg.qr(draw(4, 4, seed=9)).Q
    features, queries = draw(10, 4), draw(20, 4, seed=1)
    before = fitted(features, LABELS, THREE)(Output(queries, queries), THREE)
    turned = queries @ rotation
    after = fitted(features @ rotation, LABELS, THREE)(Output(turned, turned), THREE)
    torch.testing.assert_close(after, before)


def test_the_five_best_are_the_five_nearest() -> None:
    scorer, queries = fitted(draw(10, 4), LABELS, THREE), draw(20, 4, seed=1)
    best = scorer(Output(queries, queries), THREE).topk(5).indices
    distances = torch.cdist(queries / queries.norm(dim=1, keepdim=True), scorer.means)
    assert torch.equal(best, distances.argsort(1)[:, :5])


def test_a_class_without_images_keeps_its_mean() -> None:
    scorer = fitted(draw(10, 4), [0, 0, 1, 1, 1, 1, 1, 1, 1, 1], task_ends.table(2))
    features = draw(2, 4, seed=1)
    kept = scorer.means[1].clone()
    scorer.fit(task_ends.end(task_ends.table(2, 1), [0, 2], [1], [0], Output(features, features)))
    assert scorer.means.shape == (3, 4)
    assert torch.equal(scorer.means[1], kept)


def test_as_many_images_of_new_classes_as_old_ones_have() -> None:
    """With a growing memory they are just those that it goes on to keep."""
    first, both = task_ends.table(3), task_ends.table(3, 2)
    labels = torch.tensor([0] * 6 + [1] + [2] * 6 + [3] * 6 + [4] * 2)
    images = Output(draw(21, 4), draw(21, 4))
    select, random = random_selection(Randomness(0)), NearestMean("exemplars").double()
    random.fit(task_ends.end(first, labels, range(13), [], images))
    groups = memories.by_class(torch.arange(21), labels)
    assert_means(random, images, list(groups.values())[:3])

    old = {c: groups[c] for c in range(3)}
    memory = memories.update(Memory(), old, first, GrowingBudget(4), select)
    random.fit(task_ends.end(both, labels, range(13, 21), memory.indices, images))
    arrived = {c: groups[c] for c in (3, 4)}
    after = memories.update(memory, arrived, both, GrowingBudget(4), select)
    assert after.counts == (4, 1, 4, 4, 2)
    assert_means(random, images, list(after.exemplars))


def assert_means(scorer: Scorer, images: Output, groups: list[Tensor]) -> None:
    means = scorer.get_buffer("means")
    for found, group in zip(means.tolist(), groups, strict=True):
        assert found == pytest.approx(oracles.class_mean(oracles.rows(images.features[group])))


# ---- in a stream


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("icarl") / "patterns.npz", IMAGES)


@pytest.mark.parametrize("option", ["all", "exemplars"])
def test_the_means_of_a_stream(dataset: Path, option: str) -> None:
    """Of all new images (or as many as an old class has) and of the exemplars, under the test transform."""
    context = plan_for("icarl", dataset).context
    select = random_selection(context.random)
    for trace in follow("icarl", dataset, nme_new_classes=option):
        groups = memories.by_class(torch.cat([trace.memory.indices, trace.task.indices]), context.samples.labels)
        assert len(groups) == trace.task.classes.seen
        if option == "exemplars" and trace.teacher:
            most = max(trace.memory.counts)
            groups |= {c: select(c, groups[c], most) for c in range(trace.task.classes.old, len(groups))}
        with torch.no_grad():
            features = [
                trace.snapshot.network(tiny_runs.preprocessed(context, group)).features for group in groups.values()
            ]
        expected = torch.tensor([oracles.class_mean(oracles.rows(of_class)) for of_class in features])
        torch.testing.assert_close(trace.snapshot.scorers[MAIN].get_buffer("means"), expected, rtol=1e-4, atol=1e-5)


def test_both_answers_are_recorded(dataset: Path, tmp_path: Path) -> None:
    """The class means' answer and the head's, of one network."""
    run(tiny_runs.config(dataset, **SETTINGS, method="icarl", out=tmp_path))
    means, cnn = read_record(tmp_path), read_record(tmp_path / "cnn")
    assert (means.label, cnn.label) == ("icarl", "icarl (cnn)")
    assert [task.loss for task in means.tasks] == [task.loss for task in cnn.tasks]
    assert all(task.score_new is not None and task.score_new <= 0 for task in means.tasks)
    assert [task.score_new for task in means.tasks] != [task.score_new for task in cnn.tasks]
    ours = follow("icarl", dataset)[-1].snapshot
    plain = replace(ours, scorers={MAIN: Scorer()})
    assert means.tasks[-1].top1 == top1(ours, dataset)
    assert cnn.tasks[-1].top1 == top1(plain, dataset)


def top1(snapshot: Snapshot, dataset: Path) -> float:
    plan = plan_for("icarl", dataset)
    test = plan.stream.test
    with torch.inference_mode():
        output = snapshot.network(tiny_runs.preprocessed(plan.context, torch.arange(len(test)), test))
        hits = snapshot.scores(output).argmax(1) == test.labels
    return 100 * float(hits.double().mean())


def test_the_originals_loss_learns(dataset: Path) -> None:
    """Being a mean over the outputs, with a larger rate."""
    settings = SETTINGS | {"epochs": 8, "lr": 0.3}
    losses = run(tiny_runs.config(dataset, **settings, method="icarl", options={"loss": "bce"})).tasks[0].loss
    assert losses["main"]["bce"][-1] < 0.8 * losses["main"]["bce"][0]


# ---- herding


def test_herding_by_hand() -> None:
    """a = (1, 0), b = (0, 1), c = (0.6, 0.8), d = (-0.6, 0.8), of other lengths; their mean is (0.25, 0.65).

    First, products with the mean: a 0.25, b 0.65, c 0.67, d 0.37: c. Then the picks' mean must come near (0.25, 0.65):
    with a (0.8, 0.4), squared distance 0.365; with b (0.3, 0.9), 0.065; with d (0, 0.8), 0.085: b. Then with a
    (1.6, 1.8) / 3, 0.083; with d (0, 2.6) / 3, 0.109: a, though d is nearer to the mean than a is. Last, d.
    """
    features = torch.tensor([[2.0, 0.0], [0.0, 0.5], [3.0, 4.0], [-0.6, 0.8]], dtype=torch.float64)
    for count in range(5):
        picks = herding(lambda indices: features[indices - 10])(0, torch.arange(10, 14), count)
        assert picks.tolist() == [12, 11, 10, 13][:count]


def test_herded_exemplars_make_a_run_of_their_own(dataset: Path) -> None:
    runs = [run(tiny_runs.config(dataset, **SETTINGS, method="icarl", selection=how)) for how in ("random", "herding")]
    random, herded = (record.tasks for record in runs)
    assert random[0].loss == herded[0].loss
    assert random[-1].loss != herded[-1].loss
