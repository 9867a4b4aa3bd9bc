"""Task confusion holds row percentages."""

import numpy as np

from figure_records import record
from ssil.reporting.figures.confusion import task_confusion


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
