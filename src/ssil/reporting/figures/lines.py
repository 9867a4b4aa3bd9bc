"""Shared by all line plots: records by variant, means with bands over seeds, axes along the stream, legends."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice, pairwise
from math import ceil
from operator import attrgetter
from typing import Any, Literal

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ssil.benchmark.record import Record, TaskRecord
from ssil.benchmark.results import Estimate, estimate
from ssil.reporting.figures.style import MethodStyle, display_name, hide_frame, method_name

Runs = Mapping[str, Sequence[Record]]
"""Records by the variant's name, one record per seed."""

Along = Literal["classes_seen", "task"]

PERCENTAGES = frozenset({"top1", "top5"})
"""The fields of a task's record that `draw` draws and that are percentages."""

LARGER = {"*": 1.7, "P": 1.25, "X": 1.25, "d": 1.25, "<": 1.1, ">": 1.1}
"""Factors that enlarge markers of small area."""


def by_method(runs: Runs | Sequence[Record]) -> Runs:
    """Group records by their method; return a mapping unchanged."""
    if isinstance(runs, Mapping):
        return runs
    groups: dict[str, list[Record]] = {}
    for record in runs:
        groups.setdefault(method_name(record), []).append(record)
    return groups


def merged(panels: Iterable[Runs]) -> dict[str, Sequence[Record]]:
    """Return the variants of all panels in one mapping."""
    return {name: records for runs in panels for name, records in runs.items()}


def over_seeds(records: Sequence[Record], value: Callable[[TaskRecord], float], since: int = 1) -> list[Estimate]:
    """Estimate a number over seeds, after each task from `since` on that all records contain."""
    tasks = zip(*(record.tasks[since - 1 :] for record in records), strict=False)
    return [estimate([value(task) for task in seeds]) for seeds in tasks]


def axis_of(groups: Iterable[Sequence[Record]]) -> Along:
    """Return what the horizontal axis counts: classes seen, or tasks where one brings no class or seeds disagree."""
    for records in groups:
        seen = [[task.classes_seen for task in record.tasks] for record in records]
        grows = all(before < after for places in seen for before, after in pairwise(places))
        if not grows or any(len(set(places)) > 1 for places in zip(*seen, strict=False)):
            return "task"
    return "classes_seen"


def draw(
    axes: Axes,
    records: Sequence[Record],
    field: str,
    style: MethodStyle,
    along: Along,
    since: int = 1,
    alpha: float = 0.15,
    **line: Any,
) -> None:
    """Draw the mean over seeds as a line, with a band of one standard deviation to each side."""
    values = over_seeds(records, attrgetter(field), since)
    places = [getattr(task, along) for task in islice(records[0].tasks, since - 1, since - 1 + len(values))]
    axes.plot(places, [value.mean for value in values], **(line_options(style) | line))
    if len(records) > 1:
        low, high = ([value.mean + sign * value.deviation for value in values] for sign in (-1, 1))
        if field in PERCENTAGES:
            low, high = ([*map(within_percent, bound)] for bound in (low, high))
        axes.fill_between(places, low, high, color=style.colour, alpha=alpha, linewidth=0)


def within_percent(value: float) -> float:
    """Return the nearest possible percentage: a deviation may reach beyond 0 and 100.

    >>> within_percent(103.5), within_percent(-1.0), within_percent(50.0)
    (100.0, 0.0, 50.0)
    """
    return min(100.0, max(0.0, value))


def line_options(style: MethodStyle) -> dict[str, Any]:
    """Return a method's style as keyword arguments for matplotlib's lines."""
    size = 6.5 * LARGER.get(style.marker, 1)
    marker = {"marker": style.marker, "markersize": size, "markeredgecolor": "white", "markeredgewidth": 0.6}
    return {"color": style.colour, "linestyle": style.dashes, "linewidth": 1.8, **marker}


def stream_axis(axes: Axes, runs: Runs, along: Along, since: int = 1, most: int = 11) -> None:
    """Label the horizontal axis, with at most `most` ticks, at ends of tasks."""
    hide_frame(axes)
    longest = max((record for records in runs.values() for record in records), key=lambda record: len(record.tasks))
    places = [getattr(task, along) for task in longest.tasks[since - 1 :]]
    axes.set_xticks(places[:: -ceil(len(places) / most)])
    axes.set_xlabel(along.replace("_", " "))


def legend_entries(
    labels: Mapping[str, str], styles: Mapping[str, MethodStyle], groups: Iterable[Runs], more: Iterable[Artist] = ()
) -> list[Artist]:
    """Return one legend entry per variant, further ones, and if a variant has several seeds, one for the bands.

    Args:
        labels: Texts by variant.
        styles: Styles by variant.
        groups: The runs of all panels.
        more: Further entries.
    """
    drawn = [Line2D([], [], label=label, **line_options(styles[name])) for name, label in labels.items()]
    seeds = sorted({len(records) for runs in groups for records in runs.values()} - {1})
    if not seeds:
        return [*drawn, *more]
    count = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else seeds[0]
    return [*drawn, *more, Patch(color="#888888", alpha=0.3, linewidth=0, label=f"deviation over {count} seeds")]


def display_names(runs: Runs) -> dict[str, str]:
    """Return the variants' labels in a legend."""
    return {name: display_name(name) for name in runs}


def legend_below(figure: Figure, handles: Sequence[Artist]) -> None:
    """Add one legend for all panels and enlarge the figure to make space for it below them."""
    width = sum(1 + 0.09 * len(str(handle.get_label())) for handle in handles)
    rows = ceil(width / figure.get_figwidth())
    columns = ceil(len(handles) / rows)
    figure.set_figheight(figure.get_figheight() + 0.15 + 0.22 * rows)
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False, handlelength=3)
