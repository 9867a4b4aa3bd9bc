"""SS-IL's lead over each rival against the memory's share of a task's images, with the leads in the paper."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from ssil.benchmark.results import estimate
from ssil.reporting.figures.style import COLOURS, MARKERS, hide_frame, panel_grid, panel_title

PRINTED = "#9a9a9a"
"""Colour of the paper's numbers."""
TICKS = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2)


@dataclass(frozen=True)
class Lead:
    """SS-IL's average accuracy minus a rival's under one condition, one number per seed.

    `memory_share` is |M| / n_t: the exemplars in memory by the training images of a task.
    """

    rival: str
    memory_share: float
    tasks: int
    points: tuple[float, ...]


Leads = Mapping[str, Sequence[Lead]]
"""Leads by the title of their data set."""


def leads_by_memory(measured: Leads, printed: Leads, columns: int = 4) -> Figure:
    """Draw one panel per rival: filled markers for our runs, hollow grey ones for the paper's.

    Ours have their T, unless all have one. Several seeds give their mean with a bar of one standard deviation to each
    side.
    """
    rivals = list(dict.fromkeys(lead.rival for leads in measured.values() for lead in leads))
    figure, grid = panel_grid(len(rivals), columns, 3.2, 2.9)
    shown = [lead for leads in (*measured.values(), *printed.values()) for lead in leads if lead.rival in rivals]
    shares, (low, high) = [lead.memory_share for lead in shown], _limits(shown)
    for place, (axes, rival) in enumerate(zip(grid, rivals, strict=True)):
        _panel(axes, rival, measured, printed)
        axes.set_xlim(min(shares) / 1.2, max(shares) * 1.2)
        axes.set_ylim(low, high)
        if place % columns == 0:
            axes.set_ylabel("SS-IL's lead (points of top-1)")
        if place + columns >= len(rivals):
            axes.set_xlabel("exemplars in memory / images of a task")
    figure.legend(handles=_handles(measured, printed), loc="outside lower center", frameon=False, ncols=3)
    return figure


def _panel(axes: Axes, rival: str, measured: Leads, printed: Leads) -> None:
    for marker, leads in zip(MARKERS, printed.values(), strict=False):
        own = [lead for lead in leads if lead.rival == rival]
        shares, means = [lead.memory_share for lead in own], [estimate(lead.points).mean for lead in own]
        axes.plot(shares, means, marker, color=PRINTED, markerfacecolor="none", markersize=5)
    several = len({lead.tasks for leads in measured.values() for lead in leads}) > 1
    for (marker, colour), leads in zip(_styles(), measured.values(), strict=False):
        for lead in (lead for lead in leads if lead.rival == rival):
            _draw(axes, lead, marker, colour, f"T={lead.tasks}" if several else "")
    axes.axhline(0, color="#333333", linewidth=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(TICKS))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:g}"))
    hide_frame(axes)
    panel_title(axes, f"over {rival}")


def _draw(axes: Axes, lead: Lead, marker: str, colour: str, text: str) -> None:
    """Draw one of our leads with a text beside it."""
    found = estimate(lead.points)
    bar = found.deviation if len(lead.points) > 1 else None
    axes.errorbar(lead.memory_share, found.mean, bar, fmt=marker, color=colour, markersize=6, capsize=2, zorder=3)
    axes.annotate(text, (lead.memory_share, found.mean), (5, 4), textcoords="offset points", size=7, color=colour)


def _styles() -> list[tuple[str, str]]:
    """Return marker and colour of each of our data sets."""
    return list(zip(MARKERS, COLOURS, strict=False))


def _limits(shown: Sequence[Lead]) -> tuple[float, float]:
    """Return the ends of the vertical axis that all panels share: 8 % beyond the data, with zero inside."""
    points = [point for lead in shown for point in lead.points]
    low, high = min(0.0, *points), max(0.0, *points)
    margin = 0.08 * (high - low)
    return low - margin, high + margin


def _handles(measured: Leads, printed: Leads) -> list[Line2D]:
    ours = [
        Line2D([], [], color=colour, marker=marker, linestyle="", label=title)
        for (marker, colour), title in zip(_styles(), measured, strict=False)
    ]
    theirs = [
        Line2D([], [], color=PRINTED, marker=marker, markerfacecolor="none", linestyle="", label=f"the paper: {title}")
        for marker, title in zip(MARKERS, printed, strict=False)
    ]
    return ours + theirs
