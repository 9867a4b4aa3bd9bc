"""Bars of the old model's predictions."""

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from figure_records import record
from ssil.reporting.figures.teacher_predictions import shares, teacher_predictions

ONE = record("ce_gkd", [9, 9, 9], teacher_ratio=[None, [1.0], [0.2, 0.8]])
OTHER = record("ce_gkd", [9, 9, 9], teacher_ratio=[None, [1.0], [0.4, 0.6]])


def test_shares_are_means_over_seeds() -> None:
    second, third = shares([ONE, OTHER])
    assert second.tolist() == [100]
    assert np.allclose(third, [30, 70])


def test_the_latest_old_task_stands_on_the_ground_hatched() -> None:
    axes = teacher_predictions({"ce_gkd": [ONE, OTHER]}).axes[0]
    bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    drawn = [(bar.get_x() + bar.get_width() / 2, bar.get_y(), bar.get_height(), bar.get_hatch()) for bar in bars]
    assert [hatch for *_, hatch in drawn] == ["///", "///", None]
    assert np.allclose([numbers for *numbers, _ in drawn], [[2, 0, 100], [3, 0, 70], [3, 70, 30]])
    assert [text.get_text() for text in axes.texts] == ["100", "70"]


def test_the_older_the_lighter() -> None:
    bars = teacher_predictions({"ce_gkd": [ONE]}).axes[0].patches
    latest, oldest = (sum(to_rgb(bar.get_facecolor())) for bar in bars[1:])
    assert oldest > latest
