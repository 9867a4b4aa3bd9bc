"""How high old and new classes score (Fig. 6 a-c, S1 a)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ssil.reporting.figures.lines import Runs, band, below, draw, entries, frame, names, together
from ssil.reporting.figures.style import MethodStyle, looks, panels, title

Kind = Literal["score", "softmax"]
KINDS = {"score": "mean score", "softmax": "mean probability"}

AGES: dict[str, dict[str, Any]] = {
    "old": {"linestyle": "-"},
    "new": {"linestyle": "--", "markerfacecolor": "white", "markeredgewidth": 1.3},
}
"""Old classes have whole lines and full markers, new ones broken lines and hollow markers."""


def mean_scores(groups: Mapping[str, Runs], kind: Kind = "score") -> Figure:
    """The mean score (or probability) of old and of new classes after each task from the second on, a panel a group."""
    figure, grid = panels(len(groups), 3, 4.4, 3.4)
    for axes, (name, runs) in zip(grid, groups.items(), strict=True):
        score_panel(axes, runs, kind, looks(together(groups.values())))
        title(axes, name)
    level(grid)
    below(figure, legend(*groups.values()))
    return figure


def score_panel(axes: Axes, runs: Runs, kind: Kind, styles: Mapping[str, MethodStyle]) -> None:
    """Two lines a variant."""
    for name, records in runs.items():
        for age in AGES:
            draw(axes, records, f"{kind}_{age}", styles[name], "task", since=2, **_line(styles[name], age))
    frame(axes, runs, "task", since=2)
    axes.set_ylabel(f"{KINDS[kind]} over test images")
    if kind == "score":
        axes.update_datalim([(2, -1), (2, 1)])
        axes.autoscale_view()


def level(grid: Sequence[Axes]) -> None:
    """The same height for the same score in all panels."""
    lows, highs = zip(*(axes.get_ylim() for axes in grid), strict=True)
    for axes in grid:
        axes.set_ylim(min(lows), max(highs))


def _line(look: MethodStyle, age: str) -> dict[str, Any]:
    edge = {"markeredgecolor": look.colour} if age == "new" else {}
    return AGES[age] | edge


def legend(*groups: Runs) -> list[Artist]:
    """A marker a variant, a line for each age."""
    runs = together(groups)
    plain = {"color": "#444444", "marker": "o", "markeredgecolor": "#444444"}
    ages = [Line2D([], [], label=f"{age} classes", **plain | look) for age, look in AGES.items()]
    return [*entries(names(runs), solid(looks(runs))), *ages, *band(*groups)]


def solid(styles: Mapping[str, MethodStyle]) -> dict[str, MethodStyle]:
    """Whole lines, where dashes mean something else."""
    return {name: replace(look, dashes="-") for name, look in styles.items()}
