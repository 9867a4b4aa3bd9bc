"""Grouping, estimates over seeds, ticks and legends of line plots."""

from operator import attrgetter

from matplotlib.figure import Figure

from figure_records import record
from ssil.reporting.figures import lines
from ssil.reporting.figures.style import method_styles


def test_records_are_grouped_by_method_and_groups_are_kept() -> None:
    first, second, other = record("ft"), record("ft"), record("a/file.py:mine")
    groups = {"ft": [first, second], "mine": [other]}
    assert lines.by_method([first, other, second]) == groups
    assert lines.by_method(groups) is groups


def test_estimates_end_with_the_shortest_record() -> None:
    found = lines.over_seeds([record("ft", [90, 40, 30]), record("ft", [80, 20])], attrgetter("top1"), since=2)
    assert [(one.mean, one.count) for one in found] == [(30, 2)]


def test_ticks_are_at_ends_of_tasks_and_include_the_last() -> None:
    axes = Figure().subplots()
    lines.stream_axis(axes, {"ft": [record("ft", [50] * 20)]}, "classes_seen", most=6)
    assert sorted(axes.get_xticks()) == [8, 16, 24, 32, 40]
    assert axes.get_xlabel() == "classes seen"


def test_tasks_are_counted_where_one_brings_no_class_or_seeds_disagree() -> None:
    growing, still = record("ft", [90, 40, 30]), record("ft", [90, 40, 30], classes_seen=[4, 6, 6])
    other = record("ft", [90, 40, 30], classes_seen=[3, 4, 6])
    assert lines.axis_of([[growing, growing], [record("ssil", [90])]]) == "classes_seen"
    assert lines.axis_of([[growing], [still]]) == "task"
    assert lines.axis_of([[growing, other]]) == "task"
    assert lines.axis_of([[growing], [other]]) == "classes_seen"


def test_a_legend_explains_bands_of_several_seeds() -> None:
    runs = {"ft": [record("ft")] * 2, "ssil": [record("ssil")] * 3, "mine": [record("mine")]}
    labels = lines.display_names(runs)
    entries = lines.legend_entries(labels, method_styles(runs), [runs])
    assert [entry.get_label() for entry in entries] == ["FT", "SS-IL", "mine", "deviation over 2 to 3 seeds"]
    assert len(lines.legend_entries({"mine": "mine"}, method_styles(runs), [{"mine": runs["mine"]}])) == 1


def test_a_legend_below_enlarges_the_figure() -> None:
    figure, runs = Figure(figsize=(2, 2)), {name: [record(name)] for name in ("ft", "ssil", "ce_gkd")}
    lines.legend_below(figure, lines.legend_entries(lines.display_names(runs), method_styles(runs), [runs]))
    assert figure.get_figheight() > 2
    assert len(figure.legends) == 1
