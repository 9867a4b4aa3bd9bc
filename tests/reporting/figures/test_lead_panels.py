"""SS-IL's lead against the memory's share of a task's images, drawn."""

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ssil.reporting.figures.lead_panels import Lead, leads_by_memory

MEASURED = {"mine": [Lead("FT", 0.1, 10, (4.0, 6.0)), Lead("EEIL", 0.1, 10, (-2.0,)), Lead("FT", 0.4, 5, (1.0,))]}
PRINTED = {"theirs": [Lead("FT", 0.2, 10, (12.0,)), Lead("BiC", 0.2, 10, (90.0,))]}


@pytest.fixture(name="figure", scope="module")
def _figure() -> Figure:
    return leads_by_memory(MEASURED, PRINTED)


def panel(figure: Figure, title: str) -> Axes:
    (found,) = (axes for axes in figure.axes if axes.get_title(loc="left") == title)
    return found


def drawn(axes: Axes) -> set[tuple[float, float]]:
    """Return the points of all lines, but for those of the error bars and of zero."""
    lines = [line for line in axes.lines if line.get_marker() not in ("None", "_", "|")]
    return {(x, y) for line in lines for x, y in np.asarray(line.get_xydata()).tolist()}


def test_a_panel_has_our_means_and_the_papers_numbers(figure: Figure) -> None:
    assert drawn(panel(figure, "over FT")) == {(0.1, 5.0), (0.4, 1.0), (0.2, 12.0)}
    assert drawn(panel(figure, "over EEIL")) == {(0.1, -2.0)}


def test_only_rivals_that_were_run_have_a_panel(figure: Figure) -> None:
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["over FT", "over EEIL"]


def test_all_panels_share_a_scale_that_shows_every_point(figure: Figure) -> None:
    assert len({(axes.get_xlim(), axes.get_ylim()) for axes in figure.axes}) == 1
    low, high = figure.axes[0].get_ylim()
    assert low < -2
    assert 12 < high < 20  # the lead over BiC is not drawn


def test_the_legend_names_every_data_set(figure: Figure) -> None:
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["mine", "the paper: theirs"]


def test_points_have_their_number_of_tasks_unless_all_have_one(figure: Figure) -> None:
    assert [text.get_text() for text in panel(figure, "over FT").texts] == ["T=10", "T=5"]
    alike = leads_by_memory({"mine": MEASURED["mine"][:2]}, PRINTED)
    assert not any(text.get_text() for text in panel(alike, "over FT").texts)
