"""A section's figures, for plotly: curves along the stream with all variants, and bars of what a whole run costs."""

from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any, Final
from zlib import crc32

from plotly import graph_objects as go

from ssil.benchmark.estimates import Estimate
from ssil.benchmark.record import Record, TaskRecord
from ssil.learning.metrics import newest_share
from ssil.reporting.figures.style import MethodStyle
from ssil.reporting.headline_table import fair_share
from ssil.reporting.sections import Section

INK, GRID = "#333333", "#e6e6e6"
SYMBOLS: Final = {
    "o": "circle",
    "s": "square",
    "^": "triangle-up",
    "v": "triangle-down",
    "<": "triangle-left",
    ">": "triangle-right",
    "D": "diamond",
    "d": "diamond-tall",
    "P": "cross",
    "X": "x",
    "*": "star",
}
DASHES: Final = {"-": "solid", "--": "dash", "-.": "dashdot", ":": "dot"}


def figure(traces: Sequence[Any], x: str, y: str, **layout: Any) -> go.Figure:
    """An empty frame that fits its box: no zoom, which would catch a finger that scrolls, and no legend of its own."""
    axis = {"fixedrange": True, "zeroline": False, "automargin": True, "gridcolor": GRID, "linecolor": "#999999"}
    frame = go.Layout(
        template="none",
        autosize=True,
        dragmode=False,
        hovermode="closest",
        showlegend=False,
        font={"family": "system-ui, sans-serif", "size": 12, "color": INK},
        margin={"l": 8, "r": 10, "t": 10, "b": 8},
        hoverlabel={"bgcolor": "white", "bordercolor": "#999999", "font": {"color": INK}, "namelength": -1},
        xaxis=axis | {"title": {"text": x, "standoff": 8}, "showgrid": False, "ticks": "outside", "ticklen": 4},
        yaxis=axis | {"title": {"text": y, "standoff": 8}},
    )
    return go.Figure(traces, frame).update_layout(**layout)


def curves(section: Section, value: Callable[[TaskRecord], float], y: str, since: int = 1) -> go.Figure:
    """A line a variant: the mean over seeds after each task from `since` on, and a band of one deviation around it."""
    traces = [trace for one in _lines(section, value, since) for trace in one]
    seen = [task.classes_seen for task in max((v.records[0].tasks for v in section.variants), key=len)][since - 1 :]
    ticks = {"tickvals": seen} if len(seen) <= 12 else {}
    return figure(traces, "classes seen", y, xaxis=ticks, yaxis_rangemode="tozero")


def newest(section: Section) -> go.Figure:
    """The share of predictions on the newest task, and the share of the images that it has."""
    made = curves(section, lambda task: newest_share(task.confusion), "on the newest task (%)", since=2)
    tasks = max((variant.records[0].tasks for variant in section.variants), key=len)[1:]
    line = {"color": "#777777", "width": 2, "dash": "dot"}
    fair = {"x": [task.classes_seen for task in tasks], "y": [fair_share(task.confusion) for task in tasks]}
    return made.add_scatter(
        **fair, mode="lines", line=line, hovertemplate="its share of the images: %{y:.1f} %<extra></extra>"
    )


def _lines(section: Section, value: Callable[[TaskRecord], float], since: int) -> Iterator[list[Any]]:
    for variant in section.variants:
        look = section.looks[variant.name]
        seen = [task.classes_seen for task in variant.records[0].tasks[since - 1 :]]
        estimates = variant.along(value, since)
        band = [_band(seen, estimates, look)] if len(variant.records) > 1 else []
        traces = [*band, _line(variant.name, seen, estimates, look)]
        yield [trace | {"type": "scatter", "legendgroup": group(variant.name)} for trace in traces]


def group(name: str) -> str:
    """What the traces and the legend's buttons of a variant have in common, made of letters and digits alone."""
    return f"variant-{crc32(name.encode()):08x}"


def _line(name: str, seen: Sequence[int], estimates: Sequence[Estimate], look: MethodStyle) -> dict[str, Any]:
    return {
        "name": escape(name),
        "x": seen,
        "y": [one.mean for one in estimates],
        "text": [one.text() for one in estimates],
        "mode": "lines+markers" if look.marker else "lines",
        "line": {"color": look.colour, "width": 2, "dash": DASHES.get(look.dashes, "solid")},
        "marker": {"symbol": SYMBOLS.get(look.marker, "circle"), "size": 8, "line": {"color": "white", "width": 1}},
        "hovertemplate": "%{x} classes: %{text}",
    }


def _band(seen: Sequence[int], estimates: Sequence[Estimate], look: MethodStyle) -> dict[str, Any]:
    high, low = ([one.mean + sign * one.deviation for one in estimates] for sign in (1, -1))
    return {
        "x": [*seen, *reversed(seen)],
        "y": [*high, *reversed(low)],
        "fill": "toself",
        "fillcolor": look.colour,
        "opacity": 0.12,
        "mode": "none",
        "hoverinfo": "skip",
    }


def bars(section: Section, value: Callable[[Record], float], x: str, digits: int = 0) -> go.Figure:
    """A bar a variant, the mean over seeds, with one deviation to each side; the numbers have a column of their own."""
    estimates = {_folded(variant.name): variant.over(value) for variant in section.variants}
    deviations = [one.deviation if one.count > 1 else 0.0 for one in estimates.values()]
    bar = go.Bar(
        orientation="h",
        x=[one.mean for one in estimates.values()],
        y=list(estimates),
        marker={"color": [section.looks[variant.name].colour for variant in section.variants]},
        error_x={"array": deviations, "color": INK, "width": 3, "visible": any(deviations)},
        hoverinfo="skip",
    )
    place = {"x": 1, "xref": "paper", "xanchor": "left", "showarrow": False}
    numbers = [place | {"y": name, "text": f" {one.text(digits)}"} for name, one in estimates.items()]
    order = {"autorange": "reversed", "showgrid": False}
    made = figure([bar], x, "", xaxis_showgrid=True, yaxis=order, bargap=0.35, annotations=numbers)
    return made.update_layout(margin={"r": 86, "t": 28})


def _folded(name: str) -> str:
    """A name with a line for each of its settings.

    >>> _folded("ssil, batches mixed, memory 500")
    'ssil,<br>batches mixed,<br>memory 500'
    """
    return ",<br>".join(escape(part) for part in name.split(", "))
