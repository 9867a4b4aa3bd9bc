"""Averages by the replay batch and the number of increments."""

import numpy as np

from figure_records import record
from ssil.benchmark.record import Record
from ssil.reporting.figures.replay_sizes import replay_sizes


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
