import json
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ssil.benchmark.results import bootstrap
from ssil.core.classes import ClassTable
from ssil.learning.evaluation import best_within_task
from ssil.learning.metrics import (
    Predictions,
    average,
    backward_transfer,
    calibration_error,
    class_top1,
    confusion,
    evaluate_run,
    forgetting,
    interval,
    latest_share,
    mean_scores,
    newest_share,
    score_gap,
    task_aware_top1,
    task_top1,
    top1,
    top5,
)

some = settings(max_examples=40, deadline=None)
streams = st.lists(st.integers(1, 40), min_size=1, max_size=6)


def table(*sizes: int) -> ClassTable:
    classes = ClassTable()
    for size in sizes:
        classes = classes.extend([f"c{classes.seen + c}" for c in range(size)])
    return classes


def predictions(labels: Tensor, scores: Tensor, classes: ClassTable) -> Predictions:
    p, old = scores.softmax(1), classes.old
    return Predictions(
        labels,
        top=scores.topk(min(5, classes.seen)).indices,
        confidence=p.amax(1),
        score_old=scores[:, :old].mean(1),
        score_new=scores[:, old:].mean(1),
        softmax_old=p[:, :old].mean(1),
        softmax_new=p[:, old:].mean(1),
        score_spread=torch.ones(len(labels)),
    )


def answers(labels: list[int], best: list[int], classes: ClassTable) -> Predictions:
    """Predictions whose best class is given; the next ones follow in order."""
    scores = -torch.arange(float(classes.seen)).repeat(len(labels), 1)
    scores[torch.arange(len(labels)), torch.tensor(best)] = 1.0
    return predictions(torch.tensor(labels), scores, classes)


def guesses(sizes: list[int], seed: int, images: int = 50) -> tuple[Predictions, ClassTable]:
    classes, generator = table(*sizes), torch.Generator().manual_seed(seed)
    labels = torch.randint(classes.seen, (images,), generator=generator)
    scores = torch.randn(images, classes.seen, generator=generator, dtype=torch.float64)
    scores[torch.arange(images), labels] += 1.5
    return predictions(labels, scores, classes), classes


# ---- the specification's property checks, by number


@some
@given(streams, st.integers(0, 10**6))
def test_35_accuracies_and_confusion_fit_together(sizes: list[int], seed: int) -> None:
    found, classes = guesses(sizes, seed)
    counts, task = confusion(found, classes), classes.task_of()[found.labels]
    assert top5(found) >= top1(found)
    assert classes.seen > 5 or top5(found) == 100
    assert [sum(row) for row in counts] == torch.bincount(task, minlength=classes.task).tolist()
    assert 100 * sum(row[s] for s, row in enumerate(counts)) / len(found.labels) >= top1(found) - 1e-9


@some
@given(st.lists(st.integers(1, 40), min_size=2, max_size=6), st.integers(0, 10**6))
def test_36_mean_softmax_of_old_and_new_make_up_one(sizes: list[int], seed: int) -> None:
    found, classes = guesses(sizes, seed)
    means = mean_scores(found)
    assert means["softmax_old"] is not None
    assert means["softmax_new"] is not None
    assert classes.old * means["softmax_old"] + classes.new * means["softmax_new"] == pytest.approx(1, abs=1e-12)


def test_37_the_average_includes_the_first_task() -> None:
    assert average([90.0, 60.0, 30.0]) == 60.0
    assert average([90.0]) == 90.0


# ---- worked by hand


def test_uneven_tasks() -> None:
    classes = table(3, 1, 2)
    found = answers([0, 1, 2, 2, 3, 3, 4, 5], [0, 1, 4, 0, 3, 5, 4, 4], classes)
    assert top1(found) == 50.0
    assert task_top1(found, classes) == [50.0, 50.0, 50.0]
    assert confusion(found, classes) == [[3, 0, 1], [0, 1, 1], [0, 0, 2]]
    assert newest_share(confusion(found, classes)) == 50.0
    assert class_top1(found, classes) == [100.0, 100.0, 0.0, 50.0, 100.0, 0.0]


def test_top5_counts_the_five_best() -> None:
    classes = table(4, 4)
    found = answers([3, 4, 5, 7], [0, 7, 5, 6], classes)  # five best: 0-4 | 7, 0-3 | 5, 0-3 | 6, 0-3
    assert (top1(found), top5(found)) == (25.0, 50.0)


def test_fewer_than_five_classes() -> None:
    classes = table(2, 1)
    found = answers([0, 1, 2], [1, 1, 1], classes)
    assert found.top.shape == (3, 3)
    assert top1(found) == pytest.approx(100 / 3)
    assert top5(found) == 100
    assert task_top1(found, classes) == [50.0, 0.0]


def test_more_than_a_hundred_classes() -> None:
    classes = table(100, 30)
    labels = list(range(130))
    found = answers(labels, [c if c < 120 else c - 120 for c in labels], classes)
    assert task_top1(found, classes) == [100.0, pytest.approx(200 / 3)]
    assert confusion(found, classes) == [[100, 0], [10, 20]]
    assert newest_share(confusion(found, classes)) == pytest.approx(100 * 20 / 130)


def test_a_task_without_images_has_no_accuracy() -> None:
    first, second = task_top1(answers([0, 1], [0, 0], table(2, 1)), table(2, 1))
    assert first == 50.0
    assert math.isnan(second)


def test_mean_scores() -> None:
    classes = table(2, 2)
    found = predictions(torch.tensor([0, 3]), torch.tensor([[1.0, 3.0, 5.0, 7.0], [0.0, 0.0, 0.0, 0.0]]), classes)
    assert (mean_scores(found)["score_old"], mean_scores(found)["score_new"]) == (1.0, 3.0)
    first = mean_scores(answers([0, 1], [0, 1], table(2)))
    assert (first["score_old"], first["softmax_old"]) == (None, None)
    assert first["softmax_new"] == pytest.approx(0.5)


def test_forgetting_takes_the_best_earlier_accuracy() -> None:
    history = [[80.0], [90.0, 50.0], [70.0, 60.0, 40.0], [60.0, 70.0, 10.0, 99.0]]
    assert forgetting(history) == pytest.approx((30 - 10 + 30) / 3)
    assert forgetting([[80.0]]) == 0.0


def test_backward_transfer_starts_where_a_task_was_learnt() -> None:
    history = [[80.0], [90.0, 50.0], [70.0, 60.0, 40.0], [60.0, 70.0, 10.0, 99.0]]
    assert backward_transfer(history) == pytest.approx((-20 + 20 - 30) / 3)
    assert backward_transfer([[80.0]]) == 0.0


def test_a_class_without_images_has_no_accuracy() -> None:
    accuracies = class_top1(answers([0, 2], [0, 0], table(3, 1)), table(3, 1))
    assert accuracies[::2] == [100.0, 0.0]
    assert all(map(math.isnan, accuracies[1::2]))


def sure(confidence: list[float], correct: list[bool]) -> Predictions:
    """Predictions that are so sure, right or wrong."""
    labels = [0 if right else 1 for right in correct]
    return replace(answers(labels, [0] * len(labels), table(2)), confidence=torch.tensor(confidence))


def test_calibration_error() -> None:
    found = sure([0.4, 0.5, 0.9, 1.0], [False, True, True, False])
    # up to 0.5: confidence 0.45, accuracy 0.5; above: 0.95 and 0.5; two images each
    assert calibration_error(found, bins=2) == pytest.approx(100 * (0.05 / 2 + 0.45 / 2))
    assert calibration_error(found, bins=1) == pytest.approx(100 * (0.7 - 0.5))
    assert calibration_error(sure([1.0, 1.0], [True, True])) == 0.0
    assert calibration_error(sure([0.0, 1.0], [True, False])) == 100.0


@some
@given(st.lists(st.tuples(st.floats(0, 1, width=32), st.booleans()), min_size=1, max_size=60), st.integers(1, 20))
def test_calibration_error_by_a_loop(images: list[tuple[float, bool]], bins: int) -> None:
    error = 0.0
    for bin in range(bins):
        low, high = bin / bins, (bin + 1) / bins
        inside = [(p, right) for p, right in images if low < p <= high or (bin == 0 and p == 0)]
        if inside:
            accuracy = sum(right for _, right in inside) / len(inside)
            confidence = sum(p for p, _ in inside) / len(inside)
            error += len(inside) / len(images) * abs(accuracy - confidence)
    confidences, correct = zip(*images, strict=True)
    assert calibration_error(sure([*confidences], [*correct]), bins) == pytest.approx(100 * error, abs=1e-9)


def test_interval() -> None:
    half = answers([0, 0, 1, 1], [0, 0, 0, 0], table(2))
    # of 4 images at 1/2, P(hits <= 0, 1, 2, 3) is 1/16, 5/16, 11/16, 15/16
    assert interval(half, level=0.5) == (25.0, 75.0)
    assert interval(half) == (0.0, 100.0)
    assert interval(answers([0, 1], [1, 0], table(2))) == (0.0, 0.0)
    assert interval(answers([0, 1], [0, 1], table(2))) == (100.0, 100.0)


@pytest.mark.parametrize("level", [0.68, 0.95])
def test_the_interval_is_what_a_bootstrap_tends_to(level: float) -> None:
    found, _ = guesses([3, 7], seed=0, images=400)
    drawn = bootstrap(100 * found.correct.double().numpy(), level=level, draws=4_000)
    assert interval(found, level) == pytest.approx(drawn, abs=0.5)  # two images


def test_latest_share() -> None:
    assert latest_share([1.0]) == 100.0
    assert latest_share([0.5, 0.2, 0.3]) == pytest.approx(30)


def scored(old: list[float], new: list[float], spread: list[float]) -> Predictions:
    found = answers([0] * len(old), [0] * len(old), table(1, 1))
    tensors = (torch.tensor(values) for values in (old, new, spread))
    return replace(found, **dict(zip(("score_old", "score_new", "score_spread"), tensors, strict=True)))


def test_score_gap() -> None:
    # means 1 and 3, mean square 2.5
    assert score_gap(scored([0.0, 2.0], [1.0, 5.0], [1.0, 2.0])) == pytest.approx(2 / math.sqrt(2.5))
    assert score_gap(scored([1.0, 5.0], [0.0, 2.0], [1.0, 2.0])) == pytest.approx(-2 / math.sqrt(2.5))
    assert score_gap(scored([0.0, 2.0], [2.0, 0.0], [1.0, 2.0])) == 0.0
    assert math.isfinite(score_gap(scored([0.0], [1.0], [0.0])))
    assert math.isnan(score_gap(answers([0, 1], [0, 1], table(2))))


def test_the_numbers_of_a_stream() -> None:
    sizes = [3, 1, 2]
    found = [guesses(sizes[:task], seed=task) for task in (1, 2)]
    numbers = evaluate_run([predictions for predictions, _ in found], sizes)
    assert len(numbers) == 2
    for number, (predictions, classes) in zip(numbers, found, strict=True):
        assert (number.top1, number.top5) == (top1(predictions), top5(predictions))
        assert number.task_top1 == task_top1(predictions, classes)
        assert number.class_top1 == class_top1(predictions, classes)
        assert number.newest_share == newest_share(confusion(predictions, classes))
        assert number.interval == interval(predictions)
        assert number.calibration_error == calibration_error(predictions)
    assert math.isnan(numbers[0].score_gap)
    assert numbers[1].score_gap == score_gap(found[1][0])


def test_results_are_json() -> None:
    found, classes = guesses([3, 7], seed=0)
    results = [top1(found), top5(found), task_top1(found, classes), confusion(found, classes), mean_scores(found)]
    assert json.loads(json.dumps(results, allow_nan=False)) == results


@some
@given(streams, st.integers(0, 99))
def test_knowing_the_task_never_lowers_the_accuracy(sizes: list[int], seed: int) -> None:
    """With a single task it is top-1; with tasks of one class each, 100 %."""
    classes, generator = table(*sizes), torch.Generator().manual_seed(seed)
    labels = torch.randint(classes.seen, (30,), generator=generator)
    scores = torch.randn(30, classes.seen, generator=generator)
    found = replace(predictions(labels, scores, classes), within_task=best_within_task(scores, labels, classes))
    known = task_aware_top1(found)
    assert known is not None
    assert known >= top1(found)
    if len(sizes) == 1:
        assert known == top1(found)
    if max(sizes) == 1:
        assert known == 100
    assert task_aware_top1(predictions(labels, scores, classes)) is None
