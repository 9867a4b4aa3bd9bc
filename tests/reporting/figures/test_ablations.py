"""Scores, probabilities, accuracies and confusion in ablations; averages by the size of the replay batch."""

import numpy as np

from figure_records import record
from ssil.benchmark.record import Record
from ssil.reporting.figures.ablations import replay_ablation, replay_sizes, softmax_ablation

PAIRS = {"with TKD": ("ssil", "ce_tkd"), "without TKD": ("ce_ss", "ce")}
SEEDS = [record("ssil", [9, 9, 9], score_old=[None, 0.5, 1.0], score_new=[7, old, 3]) for old in (1, 2)]


def test_scores_of_pairs_then_probabilities_and_accuracies_of_all() -> None:
    runs = {name: [record(name)] for name in ("ssil", "ce_tkd", "ce_ss", "ce")}
    pairs = {title: {name: runs[name] for name in pair} for title, pair in PAIRS.items()}
    panels = softmax_ablation(pairs).axes
    assert [axes.get_title(loc="left") for axes in panels] == [
        "(a) scores, with TKD",
        "(b) scores, without TKD",
        "(c) probabilities",
        "(d) accuracy",
    ]
    assert [len(axes.lines) for axes in panels] == [4, 4, 8, 4]


def test_replay_has_a_confusion_for_each_variant() -> None:
    panels = replay_ablation({"ssil w/o ER": [record("ssil")], "ssil": [record("ssil")]}).axes
    assert [axes.get_title(loc="left")[:14] for axes in panels] == [
        "(a) scores",
        "(b) SS-IL w/o ",
        "(c) SS-IL: 25 ",
        "(d) accuracy",
    ]
    assert [len(axes.images) for axes in panels] == [0, 1, 1, 0]
    assert len({line.get_marker() for line in panels[-1].lines}) == 2


def test_scores_of_old_and_new_classes_from_the_second_task_on() -> None:
    old, new = softmax_ablation({"a": {"ssil": SEEDS}}).axes[0].lines
    assert np.array_equal(old.get_xydata(), [[2, 0.5], [3, 1.0]])
    assert np.array_equal(new.get_xydata(), [[2, 1.5], [3, 3.0]])
    assert (old.get_linestyle(), new.get_linestyle()) == ("-", "--")
    assert (old.get_markerfacecolor(), new.get_markerfacecolor()) == ("#0072b2", "white")


def test_small_scores_look_small_and_panels_share_their_limits() -> None:
    left, right, *_ = softmax_ablation({"a": {"ssil": SEEDS}, "b": {"ce": [record("ce")]}}).axes
    assert left.get_ylim() == right.get_ylim()
    assert left.get_ylim()[0] <= -1


def test_probabilities_of_old_and_new_classes() -> None:
    old, new = softmax_ablation({"a": {"ce": [record("ce")]}}).axes[-2].lines
    assert [np.asarray(line.get_ydata()).tolist() for line in (old, new)] == [[0.1], [0.2]]


def _run(replay: int | None, increments: int, top1: float) -> Record:
    training = {"batch": 128, "increments": increments}
    return record("ssil", [top1, top1], {"options": {"replay_batch": replay}, "training": training})


def test_cells_are_means_over_seeds_and_gaps_stay_empty() -> None:
    runs = {"a": [_run(None, 10, 60), _run(32, 10, 62)], "b": [_run(64, 10, 50)], "c": [_run(32, 5, 70)]}
    left, right = replay_sizes(runs).axes
    assert np.ma.asarray(left.images[0].get_array()).tolist() == [[70, 61], [None, 50]]
    assert [text.get_text() for text in left.texts] == ["70.0", "61.0 ± 1.4", "", "50.0"]
    assert [text.get_text() for text in right.texts] == ["75.0", "66.0 ± 1.4", "", "55.0"]
    assert [label.get_text() for label in (*left.get_xticklabels(), *left.get_yticklabels())] == ["5", "10", "32", "64"]


def test_small_differences_look_small() -> None:
    image = replay_sizes({"a": [_run(16, 5, 60), _run(32, 5, 61)]}).axes[0].images[0]
    assert image.get_clim() == (51, 61)
