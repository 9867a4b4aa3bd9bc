"""Interactive figures hold the records' numbers, and names as text."""

from dataclasses import replace

import pytest
import torch

from report_runs import run
from ssil.benchmark.record import summarise
from ssil.reporting import plotly_figures as figures
from ssil.reporting import plotly_maps
from ssil.reporting.figures.illustrations import LOSSES, descend, imbalanced_stream
from ssil.reporting.sections import AccuracyBand, Section, sections


@pytest.fixture
def section() -> Section:
    """Two seeds of one variant, one of another."""
    return sections([run("ft"), run("ft", (80, 50, 20), seed=1), run("ssil", (70, 70, 70))])[0]


def test_curves_have_a_mean_and_a_band_over_seeds(section: Section) -> None:
    ssil, band, ft = figures.accuracy_curves(section, "top1").data
    assert (ssil.name, ft.name) == ("ssil", "ft")
    assert list(ft.x) == [2, 4, 6]
    assert list(ft.y) == [85, 55, 30]
    assert [round(y, 1) for y in band.y] == [92.1, 62.1, 44.1, 15.9, 47.9, 77.9]
    assert list(band.x) == [2, 4, 6, 6, 4, 2]
    assert band.legendgroup == ft.legendgroup == figures.group_id("ft")
    assert (ft.line.color, ft.line.dash, ft.marker.symbol) != (ssil.line.color, ssil.line.dash, ssil.marker.symbol)


def test_a_stream_without_new_classes_is_drawn_by_task() -> None:
    blurry = run("ft")
    tasks = [task.model_copy(update={"classes_seen": 6}) for task in blurry.record.tasks]
    (section,) = sections([replace(blurry, record=blurry.record.model_copy(update={"tasks": tasks}))])
    figure = figures.accuracy_curves(section, "top1")
    assert list(figure.data[0].x) == [1, 2, 3]
    assert figure.layout.xaxis.title.text == "task"
    assert list(figures.newest_shares(section).data[-1].x) == [2, 3]


def test_bands_stay_within_percentages() -> None:
    (section,) = sections([run("ft", (100, 60, 0)), run("ft", (90, 20, 9), seed=1)])
    band, _ = figures.accuracy_curves(section, "top1").data
    assert max(band.y) == 100
    assert min(band.y) == 0


def test_published_averages_stand_behind_the_curves(section: Section) -> None:
    published = replace(section, published={"ssil": AccuracyBand(60.0, 65.5, "by others")})
    box, ssil, *_ = figures.accuracy_curves(published, "top1").data
    assert (set(box.x), set(box.y)) == ({2, 6}, {60.0, 65.5})
    assert box.legendgroup == ssil.legendgroup
    assert len(figures.accuracy_curves(published, "top5").data) == len(figures.accuracy_curves(section, "top5").data)


def test_the_newest_share_begins_with_the_second_task(section: Section) -> None:
    *_, ft, fair = figures.newest_shares(section).data
    assert list(ft.y) == [75, 75]
    assert [round(y, 1) for y in fair.y] == [50, 33.3]


def test_bars_have_deviations_and_numbers(section: Section) -> None:
    figure = figures.bars(section, lambda record: summarise(record.tasks).forgetting, "points", 1)
    (bar,) = figure.data
    assert list(bar.x) == [0, 40]
    assert [round(one, 2) for one in bar.error_x.array] == [0, 7.07]
    assert [note.text for note in figure.layout.annotations] == [" 0.0", " 40.0 ± 7.1"]


def test_heat_maps(section: Section) -> None:
    ft = section.variants[1]
    (accuracy,) = plotly_maps.accuracy_by_task(ft).data
    assert [list(row) for row in accuracy.z] == [[85, None, None], [55, 55, None], [30, 30, 30]]
    (confusion,) = plotly_maps.task_confusion(ft).data
    assert [list(row) for row in confusion.z] == [[25, 0, 75], [0, 50, 50], [0, 0, 100]]
    (teacher,) = plotly_maps.teacher_predictions(ft).data
    assert [list(row) for row in teacher.z] == [[100, None], [25, 75]]
    assert list(teacher.y) == [2, 3]


def test_old_and_new_scores(section: Section) -> None:
    old, new = figures.scores(section.variants[0]).data
    assert (list(old.x), list(old.y), list(new.y)) == ([2, 3], [-1, -1], [1, 1])
    even, old, new = figures.probabilities(section.variants[0], 0.05, 0.2).data
    assert (list(even.y), list(old.y), list(new.y)) == ([1 / 4, 1 / 6], [0.05, 0.05], [0.2, 0.2])


def test_names_are_text_for_plotly_too() -> None:
    (section,) = sections([run("a.py:<b>x", options={"a": "<i>"}), run("a.py:<b>x")])
    line = figures.accuracy_curves(section, "top1").data[0]
    assert line.name.startswith("&lt;b&gt;x, a ")
    assert figures.bars(section, lambda record: 1.0, "").data[0].y[0] == f"&lt;b&gt;x,<br>{line.name.split(', ')[1]}"


def test_a_variant_looks_the_same_where_others_are_missing() -> None:
    (section,) = sections([run("mine", (90,)), run("yours", (80, 80)), run("ft")])
    all_lines = {line.name: line for line in figures.accuracy_curves(section, "top1").data}
    later = {line.name: line for line in figures.newest_shares(section.since(2)).data}
    assert set(all_lines) - set(later) == {"mine"}
    for name in ("yours", "ft"):
        assert later[name].legendgroup == all_lines[name].legendgroup
        assert later[name].marker == all_lines[name].marker
        assert later[name].line == all_lines[name].line


def test_probability_limits_span_all_variants(section: Section) -> None:
    assert figures.probability_limits(section) == pytest.approx((0.05, 0.2))


def test_imbalanced_steps_draw_the_same_scores_as_the_figure_of_the_paper() -> None:
    drawn = figures.imbalanced_steps()
    samples = imbalanced_stream(rounds=6, new=8)
    for name, loss in LOSSES.items():
        lines = torch.tensor([line.y for line in drawn[name].data]).T
        torch.testing.assert_close(lines, descend(loss, samples))
        assert len(drawn[name].layout.shapes) == 6
    first, second = (figure.layout.yaxis.range for figure in drawn.values())
    assert first == second
