"""Interactive figures of the report, for plotly; they draw the same series over seeds as ssil.reporting.figures."""

from collections.abc import Callable, Sequence
from html import escape
from math import log10, nan
from typing import Any, Final, Literal
from zlib import crc32

from plotly import graph_objects as go
from torch import Tensor

from ssil.benchmark.record import Record, TaskRecord
from ssil.benchmark.results import Estimate
from ssil.learning.metrics import newest_share
from ssil.reporting.figures.illustrations import LOSSES, descend, imbalanced_stream, shared_limits
from ssil.reporting.figures.lines import within_percent
from ssil.reporting.figures.style import NEW, OLD, MethodStyle
from ssil.reporting.headline_table import fair_share
from ssil.reporting.plotly_frame import INK, framed
from ssil.reporting.sections import Section, Variant

_PLAIN = {"o": "circle", "s": "square", "D": "diamond", "d": "diamond-tall", "P": "cross", "X": "x", "*": "star"}
SYMBOLS: Final = _PLAIN | {"^": "triangle-up", "v": "triangle-down", "<": "triangle-left", ">": "triangle-right"}
"""Plotly's symbols by matplotlib's markers."""

DASHES: Final = {"-": "solid", "--": "dash", "-.": "dashdot", ":": "dot"}
AGES: Final = {"old": (OLD, "dash", "square"), "new": (NEW, "solid", "circle")}
"""Colour, dash and symbol of old and of new classes."""


def accuracy_curves(section: Section, metric: Literal["top1", "top5"]) -> go.Figure:
    """Draw accuracy over all classes seen after each task; behind top-1, the averages that others have published."""
    bands = [_published(section, one) for one in section.variants if metric == "top1" and one.name in section.published]
    return _curves(section, lambda task: getattr(task, metric), f"{metric[:3]}-{metric[3:]} accuracy (%)", behind=bands)


def _published(section: Section, variant: Variant) -> dict[str, Any]:
    """Return the band of published averages of a variant, as wide as its curve."""
    low, high, _ = section.published[variant.name]
    seen = _places(section, variant.records[0].tasks)
    return {
        "type": "scatter",
        "legendgroup": group_id(variant.name),
        "x": [seen[0], seen[-1], seen[-1], seen[0], seen[0]],
        "y": [low, low, high, high, low],
        "mode": "lines",
        "line": {"color": section.styles[variant.name].colour, "width": 1, "dash": "dot"},
        "fill": "toself",
        "fillcolor": "rgba(119, 119, 119, 0.15)",
        "hoverinfo": "skip",
    }


def newest_shares(section: Section) -> go.Figure:
    """Draw the share of predictions on the newest task from the second task on, and its share of the test images."""
    figure = _curves(section, lambda task: newest_share(task.confusion), "on the newest task (%)", since=2)
    tasks = max((variant.records[0].tasks for variant in section.variants), key=len)[1:]
    return figure.add_scatter(
        x=_places(section, tasks),
        y=[fair_share(task.confusion) for task in tasks],
        mode="lines",
        line={"color": "#777777", "width": 2, "dash": "dot"},
        hovertemplate="its share of the images: %{y:.1f} %<extra></extra>",
    )


def _curves(
    section: Section,
    value: Callable[[TaskRecord], float],
    y: str,
    since: int = 1,
    behind: Sequence[dict[str, Any]] = (),
) -> go.Figure:
    """Draw, per variant, the mean percentage over seeds after each task from `since` on, with a band of one deviation.

    `behind` are traces to draw first.
    """
    traces = [*behind]
    for variant in section.variants:
        style, estimates = section.styles[variant.name], variant.along(value, since)
        seen = _places(section, variant.records[0].tasks[since - 1 :])
        band = [_band(seen, estimates, style)] if len(variant.records) > 1 else []
        shared = {"type": "scatter", "legendgroup": group_id(variant.name)}
        hover = "%{x} classes: %{text}" if section.along == "classes_seen" else "task %{x}: %{text}"
        traces += [trace | shared for trace in (*band, _line(variant.name, seen, estimates, style, hover))]
    seen = _places(section, max((v.records[0].tasks for v in section.variants), key=len)[since - 1 :])
    ticks = {"tickvals": seen} if len(seen) <= 12 else {}
    return framed(traces, section.along.replace("_", " "), y, xaxis=ticks, yaxis_rangemode="tozero")


def _places(section: Section, tasks: Sequence[TaskRecord]) -> list[int]:
    """Return the tasks' places on the horizontal axis."""
    return [getattr(task, section.along) for task in tasks]


def group_id(name: str) -> str:
    """Return the identifier, of letters and digits, that a variant's traces share with its legend buttons."""
    return f"variant-{crc32(name.encode()):08x}"


def line_trace(
    name: str, y: Sequence[float], colour: str, dash: str, symbol: str, hover: str, x: Sequence[int] | None = None
) -> dict[str, Any]:
    """Return a line with markers; without `x`, values are numbered from 0."""
    return {
        "type": "scatter",
        "name": name,
        "x": x,
        "y": y,
        "mode": "lines+markers",
        "line": {"color": colour, "width": 2, "dash": dash},
        "marker": {"symbol": symbol, "size": 6},
        "hovertemplate": hover,
    }


def _line(
    name: str, seen: Sequence[int], estimates: Sequence[Estimate], style: MethodStyle, hover: str
) -> dict[str, Any]:
    dash, symbol = DASHES.get(style.dashes, "solid"), SYMBOLS.get(style.marker, "circle")
    means = [one.mean for one in estimates]
    return line_trace(escape(name), means, style.colour, dash, symbol, hover, seen) | {
        "text": [one.text() for one in estimates],
        "mode": "lines+markers" if style.marker else "lines",
        "marker": {"symbol": symbol, "size": 8, "line": {"color": "white", "width": 1}},
    }


def _band(seen: Sequence[int], estimates: Sequence[Estimate], style: MethodStyle) -> dict[str, Any]:
    high, low = ([within_percent(one.mean + sign * one.deviation) for one in estimates] for sign in (1, -1))
    return {
        "x": [*seen, *reversed(seen)],
        "y": [*high, *reversed(low)],
        "fill": "toself",
        "fillcolor": style.colour,
        "opacity": 0.12,
        "mode": "none",
        "hoverinfo": "skip",
    }


def bars(section: Section, value: Callable[[Record], float], x: str, digits: int = 0) -> go.Figure:
    """Draw, per variant, a bar of the mean over seeds with one deviation to each side, and its numbers on the right."""
    estimates = {_folded(variant.name): variant.over(value) for variant in section.variants}
    deviations = [one.deviation if one.count > 1 else 0.0 for one in estimates.values()]
    bar = go.Bar(
        orientation="h",
        x=[one.mean for one in estimates.values()],
        y=list(estimates),
        marker={"color": [section.styles[variant.name].colour for variant in section.variants]},
        error_x={"array": deviations, "color": INK, "width": 3, "visible": any(deviations)},
        hoverinfo="skip",
    )
    place = {"x": 1, "xref": "paper", "xanchor": "left", "showarrow": False}
    numbers = [place | {"y": name, "text": f" {one.text(digits)}"} for name, one in estimates.items()]
    order = {"autorange": "reversed", "showgrid": False}
    figure = framed([bar], x, "", xaxis_showgrid=True, yaxis=order, bargap=0.35, annotations=numbers)
    return figure.update_layout(margin={"r": 86, "t": 28})


def bars_height(section: Section) -> float:
    """Return the height of a bar chart in rem, with space for one line per setting in the variants' names."""
    lines = max(variant.name.count(", ") + 1 for variant in section.variants)
    return 4 + len(section.variants) * (0.7 + 0.95 * lines)


def _folded(name: str) -> str:
    """Return a variant's name with one line per setting.

    >>> _folded("ssil, batches mixed, memory 500")
    'ssil,<br>batches mixed,<br>memory 500'
    """
    return ",<br>".join(escape(part) for part in name.split(", "))


def scores(variant: Variant) -> go.Figure:
    """Draw the mean score of old and of new classes after each task from the second on."""
    return framed(_old_and_new(variant, "score"), "task", "", font_size=10)


def probability_limits(section: Section) -> tuple[float, float]:
    """Return the lowest (at least 1e-5) and the highest mean probability of a class in a section."""
    found = (_means(one, f"softmax_{age}") for one in section.variants for age in AGES)
    shown = [value for values in found for value in values if value > 0] or [0.1]
    return max(min(shown), 1e-5), max(shown)


def probabilities(variant: Variant, lowest: float, highest: float) -> go.Figure:
    """Draw the mean probability of an old and of a new class after each task, on a logarithmic scale."""
    tasks = variant.records[0].tasks[1:]
    even = {
        "type": "scatter",
        "x": [task.task for task in tasks],
        "y": [1 / task.classes_seen for task in tasks],
        "mode": "lines",
        "line": {"color": "#999999", "width": 1, "dash": "dot"},
        "hovertemplate": "an equal share: %{y:.3f}<extra></extra>",
    }
    scale = {"type": "log", "range": [log10(lowest / 1.2), log10(1.2 * highest)], "dtick": "D2", "tickformat": "~g"}
    return framed([even, *_old_and_new(variant, "softmax")], "task", "", yaxis=scale, font_size=10)


def _means(variant: Variant, field: str) -> list[float]:
    """Return the means over seeds of a field after each task from the second on; nan where a record has None."""

    def value(task: TaskRecord) -> float:
        found = getattr(task, field)
        return nan if found is None else found

    return [estimate.mean for estimate in variant.along(value, since=2)]


def _old_and_new(variant: Variant, kind: Literal["score", "softmax"]) -> list[dict[str, Any]]:
    tasks = [task.task for task in variant.records[0].tasks[1:]]
    return [
        line_trace(f"{age} classes", _means(variant, f"{kind}_{age}"), *line, "task %{x}: %{y:.3g}", tasks)
        for age, line in AGES.items()
    ]


def imbalanced_steps(rounds: int = 6, new: int = 8) -> dict[str, go.Figure]:
    """Draw Fig. 3 of the paper by the loss's name: four scores under imbalanced gradient steps."""
    samples = imbalanced_stream(rounds, new)
    paths = {name: descend(loss, samples) for name, loss in LOSSES.items()}
    limits = shared_limits(list(paths.values()))
    exemplars = [
        {"type": "rect", "x0": step, "x1": step + 1, "y0": 0, "y1": 1, "yref": "paper", "line": {"width": 0}}
        | {"fillcolor": "#d0d0d0", "layer": "below"}
        for step, label in enumerate(samples)
        if label < 2
    ]
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
    frame = {"yaxis_range": limits, "shapes": exemplars, "showlegend": True, "legend": legend}
    return {
        name: framed([_score_path(path, label) for label in range(4)], "gradient step", "score", **frame)
        for name, path in paths.items()
    }


def _score_path(path: Tensor, label: int) -> dict[str, Any]:
    age, symbol = "old" if label < 2 else "new", SYMBOLS["os^D"[label]]
    colour, dash, _ = AGES[age]
    return line_trace(f"{age} class {label + 1}", path[:, label].tolist(), colour, dash, symbol, "step %{x}: %{y:.2f}")
