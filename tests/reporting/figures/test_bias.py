"""Task confusion in percent of a row, and bars of the previous model's predictions."""

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from figure_records import record
from ssil.reporting.figures.bias import task_confusion, teacher_predictions, teacher_shares

ONE = record("ce_gkd", [9, 9, 9], teacher_ratio=[None, [1.0], [0.2, 0.8]])
OTHER = record("ce_gkd", [9, 9, 9], teacher_ratio=[None, [1.0], [0.4, 0.6]])


def test_row_percentages_side_by_side() -> None:
    left, right = task_confusion([record("ft"), record("ssil")]).axes[:2]
    assert np.array_equal(np.asarray(left.images[0].get_array()), [[75, 25], [0, 0]])
    assert left.get_title(loc="left") == "FT: 25 % on the newest task"
    assert right.get_title(loc="left").startswith("SS-IL")
    assert [text.get_text() for text in left.texts] == ["75", "25", "0", "0"]


def test_seeds_are_added_up() -> None:
    other = record("ft", confusion=[[], [[0, 4], [0, 2]]])
    axes = task_confusion({"ft": [record("ft"), other]}).axes[0]
    assert np.array_equal(np.asarray(axes.images[0].get_array()), [[37.5, 62.5], [0.0, 100.0]])
    assert axes.get_title(loc="left") == "FT: 70 % on the newest task"


def test_numbers_of_many_tasks_are_left_out() -> None:
    many = record("ft", [50] * 13, confusion=[np.eye(13, dtype=int).tolist()] * 13)
    assert not "".join(text.get_text() for text in task_confusion([many]).axes[0].texts)


def test_four_fill_a_square() -> None:
    figure = task_confusion([record(name) for name in "abcd"])
    assert len({axes.get_position().x0 for axes in figure.axes[:4]}) == 2


def test_shares_are_means_over_seeds() -> None:
    second, third = teacher_shares([ONE, OTHER])
    assert second.tolist() == [100]
    assert np.allclose(third, [30, 70])


def test_the_latest_old_task_is_at_the_bottom_and_hatched() -> None:
    axes = teacher_predictions({"ce_gkd": [ONE, OTHER]}).axes[0]
    bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    drawn = [(bar.get_x() + bar.get_width() / 2, bar.get_y(), bar.get_height(), bar.get_hatch()) for bar in bars]
    assert [hatch for *_, hatch in drawn] == ["///", "///", None]
    assert np.allclose([numbers for *numbers, _ in drawn], [[2, 0, 100], [3, 0, 70], [3, 70, 30]])
    assert [text.get_text() for text in axes.texts] == ["100", "70"]


def test_older_tasks_are_lighter() -> None:
    bars = teacher_predictions({"ce_gkd": [ONE]}).axes[0].patches
    latest, oldest = (sum(to_rgb(bar.get_facecolor())) for bar in bars[1:])
    assert oldest > latest
