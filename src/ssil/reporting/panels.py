"""A section's small figures, one a variant: what happens task by task."""

from collections.abc import Sequence
from math import log10, nan
from typing import Any, Final

from plotly import graph_objects as go

from ssil.learning.metrics import average
from ssil.reporting.figures.style import NEW, OLD
from ssil.reporting.plots import figure
from ssil.reporting.sections import Variant

SHADES: Final = ("#f5f9fd", "#c6dbef", "#6baed6", "#2171b5", "#08306b")
"""From nothing to all: light to dark, so that grey print keeps the order."""

Cells = Sequence[Sequence[float]]


def accuracy_by_task(variant: Variant) -> go.Figure:
    """Top-1 on the classes of each task, after each task."""
    history = zip(*([task.task_top1 for task in record.tasks] for record in variant.records), strict=True)
    cells = [[average(values) for values in zip(*rows, strict=True)] for rows in history]
    return _heat_map(cells, "of task", "after task")


def task_confusion(variant: Variant) -> go.Figure:
    """True task by predicted task after the last one, each row in percent."""
    cells = [[100 * count / max(sum(row), 1) for count in row] for row in variant.confusion]
    return _heat_map(cells, "predicted task", "true task")


def teacher_ratio(variant: Variant) -> go.Figure:
    """Which old tasks the previous model sees in the images of each new task, before it learns them."""
    history = zip(*([task.teacher_ratio or [] for task in record.tasks] for record in variant.records), strict=True)
    cells = [[100 * average(shares) for shares in zip(*rows, strict=True)] for rows in history]
    return _heat_map(cells[1:], "seen as task", "new task", first=2)


def _heat_map(cells: Cells, x: str, y: str, first: int = 1) -> go.Figure:
    columns = max(map(len, cells))
    trace = go.Heatmap(
        z=[[*(round(value, 1) for value in row), *[None] * (columns - len(row))] for row in cells],
        x=list(range(1, columns + 1)),
        y=list(range(first, first + len(cells))),
        zmin=0,
        zmax=100,
        colorscale=SHADES,
        showscale=False,
        xgap=1,
        ygap=1,
        hoverongaps=False,
        hovertemplate=f"{y} %{{y}}, {x} %{{x}}: %{{z:.1f}} %<extra></extra>",
    )
    if columns <= 12:
        trace.update(texttemplate="%{z:.0f}", textfont={"size": 9})
    ticks = {"dtick": 1 if columns <= 12 else 5, "ticks": "", "showgrid": False, "showline": False}
    return figure([trace], x, y, xaxis=ticks, yaxis=ticks | {"autorange": "reversed"}, font_size=10)


def scores(variant: Variant) -> go.Figure:
    """The mean score of old and of new classes after each task."""
    return figure(_old_and_new(variant, "score"), "task", "", font_size=10)


def probabilities(variant: Variant, lowest: float, highest: float) -> go.Figure:
    """The mean probability of an old and of a new class after each task, on a logarithmic scale."""
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
    return figure([even, *_old_and_new(variant, "softmax")], "task", "", yaxis=scale, font_size=10)


def means(variant: Variant, field: str) -> list[float]:
    """A number after each task from the second on, over the records; nan where there is none."""
    history = zip(*([getattr(task, field) for task in record.tasks[1:]] for record in variant.records), strict=True)
    return [average([nan if value is None else value for value in seeds]) for seeds in history]


def _old_and_new(variant: Variant, kind: str) -> list[dict[str, Any]]:
    styles = {"old": (OLD, "dash", "square"), "new": (NEW, "solid", "circle")}
    return [
        {
            "type": "scatter",
            "name": f"{age} classes",
            "x": [task.task for task in variant.records[0].tasks[1:]],
            "y": means(variant, f"{kind}_{age}"),
            "mode": "lines+markers",
            "line": {"color": colour, "width": 2, "dash": dash},
            "marker": {"symbol": symbol, "size": 6},
            "hovertemplate": "task %{x}: %{y:.3g}",
        }
        for age, (colour, dash, symbol) in styles.items()
    ]
