"""Interactive heat maps of the report, for plotly: tasks by tasks, and exemplars in a batch by increments."""

from collections.abc import Sequence
from typing import Any, Final

from plotly import graph_objects as go

from ssil.benchmark.record import Record
from ssil.learning.metrics import average
from ssil.reporting.figures.ablations import replay_averages
from ssil.reporting.figures.bias import teacher_shares
from ssil.reporting.plotly_frame import framed
from ssil.reporting.sections import Variant

SHADES: Final = ("#f5f9fd", "#c6dbef", "#6baed6", "#2171b5", "#08306b")
"""Colours of heat maps from 0 to 100 %, light to dark, so that print without colour keeps the order."""


def accuracy_by_task(variant: Variant) -> go.Figure:
    """Draw top-1 on the classes of each task after each task, means over seeds."""
    history = zip(*([task.task_top1 for task in record.tasks] for record in variant.records), strict=True)
    cells = [[_known_average(values) for values in zip(*rows, strict=True)] for rows in history]
    return _task_map(cells, "of task", "after task")


def _known_average(values: Sequence[float | None]) -> float | None:
    """Return the mean of the known values; None if there is none, as for a task that brought no class."""
    known = [value for value in values if value is not None]
    return average(known) if known else None


def task_confusion(variant: Variant) -> go.Figure:
    """Draw true task by predicted task after the last task, each row in percent."""
    cells = [[100 * count / max(sum(row), 1) for count in row] for row in variant.confusion]
    return _task_map(cells, "predicted task", "true task")


def teacher_predictions(variant: Variant) -> go.Figure:
    """Draw the old tasks that the previous model predicts for the images of each new task, before training."""
    return _task_map([row.tolist() for row in teacher_shares(variant.records)], "seen as task", "new task", first=2)


def _task_map(cells: Sequence[Sequence[float | None]], x: str, y: str, first: int = 1) -> go.Figure:
    """Draw percentages by task; rows are numbered from `first`, and may be shorter than the longest one."""
    columns = max(map(len, cells))
    trace = _heat_map(
        z=[
            [*(value if value is None else round(value, 1) for value in row), *[None] * (columns - len(row))]
            for row in cells
        ],
        x=list(range(1, columns + 1)),
        y=list(range(first, first + len(cells))),
        zmin=0,
        zmax=100,
        xgap=1,
        ygap=1,
        hovertemplate=f"{y} %{{y}}, {x} %{{x}}: %{{z:.1f}} %<extra></extra>",
    )
    if columns <= 12:
        trace.update(texttemplate="%{z:.0f}", textfont={"size": 9})
    ticks = {"dtick": 1 if columns <= 12 else 5, "ticks": "", "showgrid": False, "showline": False}
    return framed([trace], x, y, xaxis=ticks, yaxis=ticks | {"autorange": "reversed"}, font_size=10)


def replay_sizes(records: Sequence[Record], k: int) -> go.Figure:
    """Draw average top-k accuracy by exemplars in a batch (rows) and increments of the stream (columns)."""
    found = replay_averages(records, k)
    trace = _heat_map(
        z=found.table,
        x=list(map(str, found.increments)),
        y=list(map(str, found.sizes)),
        text=found.texts,
        texttemplate="%{text}",
        zmin=found.limits[0],
        zmax=found.limits[1],
        xgap=2,
        ygap=2,
        hovertemplate="T = %{x}, %{y} exemplars in a batch: %{text}<extra></extra>",
    )
    axis = {"type": "category", "ticks": "", "showgrid": False, "showline": False}
    return framed([trace], "T", "exemplars in a batch", xaxis=axis, yaxis=axis | {"autorange": "reversed"})


def _heat_map(**settings: Any) -> go.Heatmap:
    return go.Heatmap(colorscale=SHADES, showscale=False, hoverongaps=False, **settings)
