"""Scores of old and new classes."""

import numpy as np

from figure_records import record
from ssil.reporting.figures.score_curves import mean_scores

SEEDS = [record("ssil", [9, 9, 9], score_old=[None, 0.5, 1.0], score_new=[7, old, 3]) for old in (1, 2)]


def test_old_and_new_from_the_second_task_on() -> None:
    axes = mean_scores({"a": {"ssil": SEEDS}}).axes[0]
    old, new = axes.lines
    assert np.array_equal(old.get_xydata(), [[2, 0.5], [3, 1.0]])
    assert np.array_equal(new.get_xydata(), [[2, 1.5], [3, 3.0]])
    assert (old.get_linestyle(), new.get_linestyle()) == ("-", "--")
    assert (old.get_markerfacecolor(), new.get_markerfacecolor()) == ("#0072b2", "white")


def test_small_scores_look_small_and_panels_have_one_height() -> None:
    left, right = mean_scores({"a": {"ssil": SEEDS}, "b": {"ce": [record("ce")]}}).axes
    assert left.get_ylim() == right.get_ylim()
    assert left.get_ylim()[0] <= -1


def test_probabilities() -> None:
    old, new = mean_scores({"a": {"ce": [record("ce")]}}, "softmax").axes[0].lines
    assert [np.asarray(line.get_ydata()).tolist() for line in (old, new)] == [[0.1], [0.2]]
