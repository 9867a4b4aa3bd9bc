"""What the line figures share: records by variant, a line with a band over seeds, ticks and legends."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from math import ceil
from typing import Any, Literal

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ssil.benchmark.estimates import Estimate, estimate
from ssil.benchmark.record import Record
from ssil.reporting.figures.style import MethodStyle, clean, method_of, shown

Runs = Mapping[str, Sequence[Record]]
"""The records of each variant by its name, one a seed."""

Along = Literal["classes_seen", "task"]
ALONG = {"classes_seen": "classes seen", "task": "task"}

LARGER = {"*": 1.7, "P": 1.25, "X": 1.25, "d": 1.25, "<": 1.1, ">": 1.1}
"""Markers with little area."""


def grouped(runs: Runs | Sequence[Record]) -> Runs:
    """Records by their method, if they are not in groups already."""
    if isinstance(runs, Mapping):
        return runs
    groups: dict[str, list[Record]] = {}
    for record in runs:
        groups.setdefault(method_of(record), []).append(record)
    return groups


def together(panels: Iterable[Runs]) -> dict[str, Sequence[Record]]:
    """The variants of all panels."""
    return {name: records for runs in panels for name, records in runs.items()}


def over_seeds(records: Sequence[Record], field: str, since: int = 1) -> list[Estimate]:
    """A task's number over seeds, after each task from `since` on that all seeds have done."""
    tasks = zip(*(record.tasks[since - 1 :] for record in records), strict=False)
    return [estimate([getattr(task, field) for task in seeds]) for seeds in tasks]


def draw(
    axes: Axes,
    records: Sequence[Record],
    field: str,
    look: MethodStyle,
    along: Along,
    since: int = 1,
    alpha: float = 0.15,
    **line: Any,
) -> None:
    """A line of means over seeds, in a band of one deviation to each side."""
    values = over_seeds(records, field, since)
    places = [getattr(task, along) for task in islice(records[0].tasks, since - 1, since - 1 + len(values))]
    axes.plot(places, [value.mean for value in values], **(line_of(look) | line))
    if len(records) > 1:
        low, high = ([value.mean + sign * value.deviation for value in values] for sign in (-1, 1))
        axes.fill_between(places, low, high, color=look.colour, alpha=alpha, linewidth=0)


def line_of(look: MethodStyle) -> dict[str, Any]:
    """How matplotlib draws a method."""
    size = 6.5 * LARGER.get(look.marker, 1)
    marker = {"marker": look.marker, "markersize": size, "markeredgecolor": "white", "markeredgewidth": 0.6}
    return {"color": look.colour, "linestyle": look.dashes, "linewidth": 1.8, **marker}


def frame(axes: Axes, runs: Runs, along: Along, since: int = 1, most: int = 11) -> None:
    """Ticks at tasks, no more than `most` of them."""
    clean(axes)
    longest = max((record for records in runs.values() for record in records), key=lambda record: len(record.tasks))
    places = [getattr(task, along) for task in longest.tasks[since - 1 :]]
    axes.set_xticks(places[:: -ceil(len(places) / most)])
    axes.set_xlabel(ALONG[along])


def entries(labels: Mapping[str, str], styles: Mapping[str, MethodStyle]) -> list[Line2D]:
    """The lines of a legend: a label for each variant."""
    return [Line2D([], [], label=label, **line_of(styles[name])) for name, label in labels.items()]


def names(runs: Runs) -> dict[str, str]:
    """What variants are called in a legend."""
    return {name: shown(name) for name in runs}


def band(*groups: Runs) -> list[Artist]:
    """What bands are, in a legend, if there are some."""
    seeds = sorted({len(records) for runs in groups for records in runs.values()} - {1})
    count = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else seeds[0] if seeds else None
    return [Patch(color="#888888", alpha=0.3, linewidth=0, label=f"deviation over {count} seeds")] if count else []


def below(figure: Figure, handles: Sequence[Artist]) -> None:
    """One legend for all panels, with room of its own below them."""
    width = sum(1 + 0.09 * len(str(handle.get_label())) for handle in handles)
    rows = ceil(width / figure.get_figwidth())
    columns = ceil(len(handles) / rows)
    figure.set_figheight(figure.get_figheight() + 0.15 + 0.22 * rows)
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False, handlelength=3)
