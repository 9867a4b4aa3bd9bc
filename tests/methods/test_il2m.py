from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import oracles
import task_ends
import tiny_runs
from followed_methods import IMAGES, follow, plan_for
from ssil.core.classes import ClassTable
from ssil.learning.registry import configure
from ssil.learning.snapshot import MAIN
from ssil.methods.il2m import Rectified, RectifiedLogits
from ssil.nn.network import Output

THREE = task_ends.table(3, 1, 2)
some = settings(max_examples=40, deadline=None)
seeds = st.integers(0, 10**6)


def draw(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def scorer_with(initial: Tensor, current: Tensor, confidence: Tensor, kind: type[Rectified] = Rectified) -> Rectified:
    """A scorer with these statistics."""
    scorer = kind()
    scorer.initial, scorer.current, scorer.confidence = initial, current, confidence
    return scorer


def random_scorer(seed: int, kind: type[Rectified] = Rectified) -> Rectified:
    """Of an old class's statistics, the current one is the smaller; of a new one's, both are the same."""
    initial, shrunk = draw(2, 6, seed=seed).sigmoid()
    current = torch.cat([(initial * shrunk)[:4], initial[4:]])
    return scorer_with(initial, current, draw(3, seed=seed + 1).sigmoid(), kind)


def logits_of(probabilities: list[list[float]]) -> Output:
    values = torch.tensor(probabilities, dtype=torch.float64).log()
    return Output(values, values)


# ---- the rule


@some
@given(seeds)
def test_the_rule_is_its_definition(seed: int) -> None:
    scorer, logits = random_scorer(seed), 2 * draw(8, 6, seed=seed + 2)
    statistics = (scorer.initial.tolist(), scorer.current.tolist(), scorer.confidence.tolist())
    for found, row in zip(scorer(Output(logits, logits), THREE).tolist(), oracles.rows(logits), strict=True):
        assert found == pytest.approx(oracles.rectified(oracles.softmax(row), *statistics, THREE.bounds))


@some
@given(seeds)
def test_the_rule_on_raw_logits(seed: int) -> None:
    scorer, logits = random_scorer(seed, RectifiedLogits), 2 * draw(8, 6, seed=seed + 2)
    statistics = (scorer.initial.tolist(), scorer.current.tolist(), scorer.confidence.tolist())
    scores = scorer(Output(logits, logits), THREE)
    for found, row in zip(scores.tolist(), oracles.rows(logits), strict=True):
        assert found == pytest.approx(oracles.rectified(row, *statistics, THREE.bounds))
    torch.testing.assert_close(scorer.probabilities(scores), scores.softmax(1))


def test_the_rule_by_hand() -> None:
    """Tasks {0, 1} and {2}, init = (0.8, 0.5, 0.9), cur = (0.4, 0.2, 0.9), conf = (0.75, 0.9): conf_2 / conf_1 = 1.2.

    (0.3, 0.2, 0.5) is seen as new: 0.3 * 2 * 1.2 = 0.72 and 0.2 * 2.5 * 1.2 = 0.6 overtake the new class's 0.5.
    (0.4, 0.25, 0.35) is seen as old, and stays.
    """
    initial, current = torch.tensor([[0.8, 0.5, 0.9], [0.4, 0.2, 0.9]], dtype=torch.float64)
    scorer = scorer_with(initial, current, torch.tensor([0.75, 0.9], dtype=torch.float64))
    scores = scorer(logits_of([[0.3, 0.2, 0.5], [0.4, 0.25, 0.35]]), task_ends.table(2, 1))
    assert scores[0].tolist() == pytest.approx([0.72, 0.6, 0.5])
    assert scores[1].tolist() == pytest.approx([0.4, 0.25, 0.35])
    assert scorer.probabilities(scores)[0].tolist() == pytest.approx([0.72 / 1.82, 0.6 / 1.82, 0.5 / 1.82])


@some
@given(seeds)
def test_an_old_answer_is_the_softmax(seed: int) -> None:
    scorer, logits = random_scorer(seed), draw(20, 6, seed=seed + 2)
    predicts_old = logits.argmax(1) < THREE.old
    probabilities, scores = logits.softmax(1), scorer(Output(logits, logits), THREE)
    assert torch.equal(scores[predicts_old], probabilities[predicts_old])
    assert not torch.isclose(scores[~predicts_old][:, : THREE.old], probabilities[~predicts_old][:, : THREE.old]).all()


@some
@given(seeds)
def test_new_classes_keep_their_values(seed: int) -> None:
    scorer, logits = random_scorer(seed), draw(20, 6, seed=seed + 2)
    scores = scorer(Output(logits, logits), THREE)
    assert torch.equal(scores[:, THREE.old :], logits.softmax(1)[:, THREE.old :])


@some
@given(seeds)
def test_equal_statistics_change_nothing(seed: int) -> None:
    means, logits = draw(6, seed=seed).sigmoid(), draw(20, 6, seed=seed + 1)
    scorer = scorer_with(means, means, torch.full((3,), 0.7, dtype=torch.float64))
    assert torch.equal(scorer(Output(logits, logits), THREE), logits.softmax(1))


def test_the_first_task_changes_nothing() -> None:
    logits, classes = draw(20, 6, seed=0), task_ends.table(6)
    scorer = Rectified().double()
    scorer.fit(task_ends.end(classes, [0, 1, 2, 3, 4, 5] * 3, range(18), [], Output(logits, logits)))
    assert torch.equal(scorer(Output(logits, logits), classes), logits.softmax(1))


@some
@given(seeds)
def test_probabilities_add_up_to_one_in_the_order_of_the_scores(seed: int) -> None:
    scorer, logits = random_scorer(seed), draw(20, 6, seed=seed + 2)
    scores = scorer(Output(logits, logits), THREE)
    probabilities = scorer.probabilities(scores)
    torch.testing.assert_close(probabilities.sum(1), torch.ones(20, dtype=torch.float64))
    assert torch.equal(probabilities.argsort(1), scores.argsort(1))


def test_classes_without_any_confidence_keep_scores_finite() -> None:
    """Old ones that are wholly forgotten or never were known; a new one that has not been learnt keeps its value."""
    never = 1e-20
    scorer = scorer_with(torch.tensor([0.9, 0.0, never]), torch.tensor([0.0, 0.0, never]), torch.tensor([0.0, 0.9]))
    logits = torch.tensor([[-200.0, 0.0, 1.0]])
    scores = scorer(Output(logits, logits), task_ends.table(2, 1))
    assert scores.isfinite().all()
    assert scores[0, 2] == logits.softmax(1)[0, 2]
    assert scorer.probabilities(scores).isfinite().all()


# ---- the statistics


def test_statistics_by_hand() -> None:
    """Task 1: images 0, 1 of class 0 at (0.8, 0.2), (0.6, 0.4), image 2 of class 1 at (0.3, 0.7).

    init = (0.7, 0.7), conf_1 = (0.8 + 0.6 + 0.7) / 3 = 0.7. Task 2: images 3, 4 of class 2 at (0.1, 0.1, 0.8) and,
    mistaken, (0.5, 0.1, 0.4): init_2 = 0.6, conf_2 = (0.8 + 0.5) / 2 = 0.65. Exemplars 0 and 2 are now at
    (0.4, 0.1, 0.5) and (0.1, 0.2, 0.7): cur = (0.4, 0.2, 0.6).
    """
    labels, scorer = [0, 0, 1, 2, 2], Rectified().double()
    first = logits_of([[0.8, 0.2], [0.6, 0.4], [0.3, 0.7]])
    scorer.fit(task_ends.end(task_ends.table(2), labels, [0, 1, 2], [], first))
    assert scorer.initial.tolist() == pytest.approx([0.7, 0.7])
    assert torch.equal(scorer.current, scorer.initial)
    assert scorer.confidence.tolist() == pytest.approx([0.7])
    unused = [1 / 3] * 3
    now = logits_of([[0.4, 0.1, 0.5], unused, [0.1, 0.2, 0.7], [0.1, 0.1, 0.8], [0.5, 0.1, 0.4]])
    scorer.fit(task_ends.end(task_ends.table(2, 1), labels, [3, 4], [0, 2], now))
    assert scorer.initial.tolist() == pytest.approx([0.7, 0.7, 0.6])
    assert scorer.current.tolist() == pytest.approx([0.4, 0.2, 0.6])
    assert scorer.confidence.tolist() == pytest.approx([0.7, 0.65])


def test_many_images_are_looked_at_in_parts() -> None:
    logits, labels = draw(1300, 3, seed=0), torch.arange(1300) % 3
    scorer = Rectified().double()
    scorer.fit(task_ends.end(task_ends.table(3), labels, range(1300), [], Output(logits, logits)))
    probabilities = logits.softmax(1)
    assert scorer.confidence.item() == pytest.approx(probabilities.amax(1).mean().item())
    for c in range(3):
        assert scorer.current[c].item() == pytest.approx(probabilities[labels == c, c].mean().item())


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("il2m") / "patterns.npz", IMAGES)


@pytest.mark.parametrize("scores", ["softmax", "raw"])
def test_the_statistics_of_a_stream(dataset: Path, scores: str) -> None:
    """Under the test transform, of the task's images and the exemplars, one image at a time."""
    context = plan_for("il2m", dataset).context
    initial, confidence = list[float](), list[float]()
    for trace in follow("il2m", dataset, scores=scores):
        classes, labels = trace.task.classes, context.samples.labels
        own: dict[int, list[float]] = {c: [] for c in range(classes.seen)}
        best = list[float]()
        for index in [*trace.task.indices, *trace.memory.indices]:
            with torch.no_grad():
                row = trace.snapshot.network(tiny_runs.preprocessed(context, index[None])).logits[0].tolist()
            values = oracles.softmax(row) if scores == "softmax" else row
            own[int(labels[index])].append(values[int(labels[index])])
            best.append(max(values))
        current = [sum(values) / len(values) for values in own.values()]
        initial += current[classes.old :]
        confidence.append(sum(best[: len(trace.task.indices)]) / len(trace.task.indices))
        buffers = dict(trace.snapshot.scorers[MAIN].named_buffers())
        for name, expected in (("initial", initial), ("current", current), ("confidence", confidence)):
            assert buffers[name].tolist() == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_an_old_class_with_more_images() -> None:
    """A task may bring more images of a known class: they count as its own, and to the task's confidence."""
    scorer = Rectified().double()
    scorer.fit(task_ends.end(task_ends.table(2), [0, 1], [0, 1], [], logits_of([[0.6, 0.4], [0.3, 0.7]])))
    now = logits_of([[0.6, 0.2, 0.2], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.2, 0.2, 0.6]])
    scorer.fit(task_ends.end(task_ends.table(2, 1), [0, 1, 2, 0], [2, 3], [0, 1], now))
    assert scorer.current.tolist() == pytest.approx([0.4, 0.5, 0.8])
    assert scorer.initial.tolist() == pytest.approx([0.6, 0.7, 0.8])
    assert scorer.confidence.tolist() == pytest.approx([0.65, 0.7])


# ---- the recipe


@pytest.mark.parametrize("profile", ["paper", "official", "quick"])
def test_it_trains_as_fine_tuning_does(profile: str) -> None:
    il2m, ft = (configure(name, profile) for name in ("il2m", "ft"))
    assert il2m.training == ft.training
    assert il2m.method.training_key == ft.method.training_key
    classes = ClassTable(("?",) * 5, (0, 3, 5))
    assert il2m.method.plan(classes) == ft.method.plan(classes)


def test_the_option_chooses_the_scorer() -> None:
    for scores, kind in (("softmax", Rectified), ("raw", RectifiedLogits)):
        assert type(configure("il2m", options={"scores": scores}).method.scorers[MAIN]()) is kind
