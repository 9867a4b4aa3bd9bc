"""Accuracy curves hold the means and deviations of the records."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

from figure_records import record
from ssil.reporting.figures.curves import accuracy_curves, accuracy_grid, branch_curves


def _legend(axes: Axes) -> list[str]:
    legend = axes.get_legend()
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()]


def test_a_line_a_record() -> None:
    figure = accuracy_curves([record("ft"), record("a/file.py:mine", [80])])
    first, second = figure.axes[0].lines
    assert np.array_equal(first.get_xydata(), [[2, 90], [4, 40]])
    assert np.array_equal(second.get_xydata(), [[2, 80]])
    assert _legend(figure.axes[0]) == [
        "mine: 80.0 on average, 80.0 at the end",
        "FT: 65.0 on average, 40.0 at the end",
    ]


def test_a_stream_without_new_classes_is_drawn_by_task() -> None:
    (axes,) = accuracy_curves([record("ft", [60, 70], classes_seen=[4, 4])], title="blurry").axes
    assert np.array_equal(axes.lines[0].get_xydata(), [[1, 60], [2, 70]])
    assert (axes.get_xlabel(), axes.get_title(loc="left")) == ("task", "blurry")


def test_seeds_make_a_mean_and_a_band() -> None:
    figure = accuracy_curves({"ft": [record("ft", [90, 40]), record("ft", [94, 46]), record("ft", [92])]}, "top5")
    (axes,) = figure.axes
    assert np.array_equal(axes.lines[0].get_xydata(), [[2, 97]])
    (band,) = axes.collections
    assert isinstance(band, PolyCollection)
    assert set(np.asarray(band.get_paths()[0].vertices)[:, 1]) == {95, 99}
    assert _legend(axes)[-1] == "deviation over 3 seeds"


def test_a_deviation_of_one_seed_is_not_drawn() -> None:
    axes = accuracy_curves([record("ft")]).axes[0]
    assert not axes.collections
    assert len(_legend(axes)) == 1


def test_many_variants_have_a_legend_apart_the_best_first() -> None:
    figure = accuracy_curves([record(name, [50 + place]) for place, name in enumerate("abcde")])
    (legend,) = figure.legends
    assert [text.get_text()[0] for text in legend.get_texts()] == list("edcba")


def test_the_upper_bound_is_black_and_has_no_markers() -> None:
    (line,) = accuracy_curves([record("joint")]).axes[0].lines
    assert (line.get_color(), line.get_marker(), line.get_linestyle()) == ("#000000", "", "--")


def test_a_grid_has_a_panel_for_each_scenario_and_metric() -> None:
    few, many = [record("ft", [90, 80])], [record("ft", [9, 8]), record("ft", [9, 8])]
    figure = accuracy_grid({"A": {"ft": many, "mine": few}, "B": {"ft": few}}, ("top1", "top5"))
    assert [(axes.get_title(loc="left"), axes.get_ylabel()[:5]) for axes in figure.axes] == [
        ("A", "top-1"),
        ("A", "top-5"),
        ("B", "top-1"),
        ("B", "top-5"),
    ]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["FT", "mine", "deviation over 2 seeds"]
    assert [axes.get_ylim() for axes in figure.axes] == [(0, 90), (0, 100), (80, 90), (80, 100)]


def test_branches_are_drawn_from_the_third_task_on() -> None:
    chain = record("ce_gkd", [90, 80, 70, 60])
    branch = record("ce_tkd", [90, 80, 72, 66], {"chain": "ce_gkd"})
    (axes,) = branch_curves({run.label: [run] for run in (chain, branch)}).axes
    assert np.array_equal(axes.lines[0].get_xydata(), [[3, 75], [4, 65]])
    assert np.array_equal(axes.lines[1].get_xydata(), [[3, 77], [4, 71]])
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["CE+GKD, the chain", "CE+TKD, branching off CE+GKD"]
