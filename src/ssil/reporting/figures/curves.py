"""Accuracy along the stream (Fig. 5, 6 d, 8, S2-S6), and of two distillations from the same teacher (Fig. 9)."""

from collections.abc import Mapping, Sequence
from math import ceil, floor
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ssil.benchmark.record import Record
from ssil.benchmark.results import estimate
from ssil.learning.metrics import average
from ssil.reporting.figures import lines
from ssil.reporting.figures.lines import Along, Runs
from ssil.reporting.figures.style import MethodStyle, base_method, display_name, method_styles, panel_grid, panel_title

Metric = Literal["top1", "top5"]
METRICS = {"top1": "top-1", "top5": "top-5"}
LEGEND: dict[str, Any] = {"frameon": False, "handlelength": 3.5}

FIRST_BRANCH = 3
"""First task drawn by `branch_curves`: with a single old task, TKD equals GKD."""


def accuracy_curves(runs: Runs | Sequence[Record], metric: Metric = "top1", title: str = "") -> Figure:
    """Draw accuracy over all classes seen after each task; the legend lists averages, the best variant first.

    Without a `title`, it is the data set and the number of classes and tasks.
    """
    runs = lines.by_method(runs)
    few = len(runs) < 5
    figure, (axes,) = panel_grid(1, 1, 7 if few else 10, 4.2 if few else 4.8)
    accuracy_panel(axes, runs, metric, method_styles(runs))
    axes.set_ylabel(f"{METRICS[metric]} accuracy over all classes seen (%)")
    record = next(iter(runs.values()))[0]
    stream = f"{record.config['dataset']}: {sum(record.task_sizes)} classes in {len(record.task_sizes)} tasks"
    panel_title(axes, title or stream)
    handles = lines.legend_entries(_averages(runs, metric, brief=not few), method_styles(runs), [runs])
    if few:
        axes.legend(handles=handles, **LEGEND)
    else:
        heading = f"average and last {METRICS[metric]} (%)"
        figure.legend(handles=handles, loc="outside right upper", title=heading, **LEGEND)
    return figure


def _averages(runs: Runs, metric: Metric, brief: bool) -> dict[str, str]:
    """Return legend labels with average and last accuracy, sorted by average."""
    labels: dict[str, tuple[float, str]] = {}
    for name, records in runs.items():
        mean = estimate([average([getattr(task, metric) for task in record.tasks]) for record in records])
        last = estimate([getattr(record.tasks[-1], metric) for record in records])
        short, long = f"{mean.mean:.1f}, {last.mean:.1f}", f"{mean.text()} on average, {last.text()} at the end"
        labels[name] = -mean.mean, f"{display_name(name)}: {short if brief else long}"
    return {name: label for name, (_, label) in sorted(labels.items(), key=lambda item: item[1][0])}


def accuracy_grid(scenarios: Mapping[str, Runs], metrics: Sequence[Metric] = ("top1",), columns: int = 3) -> Figure:
    """Draw one panel per scenario (by its title) and metric."""
    cells = [(name, runs, metric) for name, runs in scenarios.items() for metric in metrics]
    figure, grid = panel_grid(len(cells), columns, 3.6, 2.9)
    every = lines.merged(scenarios.values())
    styles = method_styles(every)
    for axes, (name, runs, metric) in zip(grid, cells, strict=True):
        accuracy_panel(axes, runs, metric, styles, most=6)
        axes.set_ylabel(f"{METRICS[metric]} accuracy (%)")
        panel_title(axes, name)
    lines.legend_below(figure, lines.legend_entries(lines.display_names(every), styles, scenarios.values()))
    return figure


def accuracy_panel(
    axes: Axes,
    runs: Runs,
    metric: Metric,
    styles: Mapping[str, MethodStyle],
    along: Along | None = None,
    most: int = 11,
) -> None:
    """Draw one line per variant; the vertical axis starts at zero unless all values exceed 30 %.

    Without `along`, the horizontal axis counts classes, or tasks where some bring no new class.
    """
    along = along or lines.axis_of(runs.values())
    alpha = 0.15 if len(runs) <= 8 else 0.08
    for name, records in runs.items():
        lines.draw(axes, records, metric, styles[name], along, alpha=alpha, zorder=3 if name == "ssil" else 2)
    lines.stream_axis(axes, runs, along, most=most)
    low, high = axes.dataLim.y0, axes.dataLim.y1
    axes.set_ylim(10 * floor(low / 10) if low > 30 else 0, min(100, 10 * ceil(high / 10)))


def branch_curves(runs: Runs, metric: Metric = "top5") -> Figure:
    """Draw Fig. 9: a chain of models, and models that learn one task each from the chain's previous model."""
    figure, (axes,) = panel_grid(1, 1, 7, 4.2)
    styles = method_styles(runs)
    for name, records in runs.items():
        lines.draw(axes, records, metric, styles[name], "task", FIRST_BRANCH)
    lines.stream_axis(axes, runs, "task", FIRST_BRANCH)
    axes.set_ylabel(f"{METRICS[metric]} accuracy over all classes seen (%)")
    panel_title(axes, "Each task learnt twice, from the same teacher")
    labels = {name: _branch_label(name, records[0]) for name, records in runs.items()}
    axes.legend(handles=lines.legend_entries(labels, styles, [runs]), **LEGEND)
    return figure


def _branch_label(name: str, record: Record) -> str:
    chain, method = record.config.get("chain"), display_name(base_method(name))
    return f"{method}, branching off {display_name(chain)}" if chain else f"{method}, the chain"
