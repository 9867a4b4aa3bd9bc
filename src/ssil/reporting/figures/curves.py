"""Accuracy along the stream (Fig. 5, 6 d, 8, S2-S6)."""

from collections.abc import Mapping, Sequence
from math import ceil, floor
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ssil.benchmark.estimates import estimate
from ssil.benchmark.record import Record
from ssil.learning.metrics import average
from ssil.reporting.figures.lines import Along, Runs, band, below, draw, entries, frame, grouped, names, together
from ssil.reporting.figures.style import MethodStyle, looks, panels, shown, title

Metric = Literal["top1", "top5"]
METRICS = {"top1": "top-1", "top5": "top-5"}
PLAIN: dict[str, Any] = {"frameon": False, "handlelength": 3.5}


def accuracy_curves(runs: Runs | Sequence[Record], metric: Metric = "top1") -> Figure:
    """The accuracy over all classes seen, after each task; the legend has the averages, the best first."""
    runs = grouped(runs)
    few = len(runs) < 5
    figure, (axes,) = panels(1, 1, 7 if few else 10, 4.2 if few else 4.8)
    accuracy_panel(axes, runs, metric, looks(runs))
    axes.set_ylabel(f"{METRICS[metric]} accuracy over all classes seen (%)")
    record = next(iter(runs.values()))[0]
    title(axes, f"{record.config['dataset']}: {sum(record.task_sizes)} classes in {len(record.task_sizes)} tasks")
    handles = [*entries(_averages(runs, metric, brief=not few), looks(runs)), *band(runs)]
    if few:
        axes.legend(handles=handles, **PLAIN)
    else:
        heading = f"average and last {METRICS[metric]} (%)"
        figure.legend(handles=handles, loc="outside right upper", title=heading, **PLAIN)
    return figure


def _averages(runs: Runs, metric: Metric, brief: bool) -> dict[str, str]:
    labels: dict[str, tuple[float, str]] = {}
    for name, records in runs.items():
        mean = estimate([average([getattr(task, metric) for task in record.tasks]) for record in records])
        last = estimate([getattr(record.tasks[-1], metric) for record in records])
        short, long = f"{mean.mean:.1f}, {last.mean:.1f}", f"{mean.text()} on average, {last.text()} at the end"
        labels[name] = -mean.mean, f"{shown(name)}: {short if brief else long}"
    return {name: label for name, (_, label) in sorted(labels.items(), key=lambda item: item[1][0])}


def accuracy_grid(scenarios: Mapping[str, Runs], metrics: Sequence[Metric] = ("top1",), columns: int = 3) -> Figure:
    """Several scenarios by their titles, a panel for each metric."""
    cells = [(name, runs, metric) for name, runs in scenarios.items() for metric in metrics]
    figure, grid = panels(len(cells), columns, 3.6, 2.9)
    everyone = together(scenarios.values())
    for axes, (name, runs, metric) in zip(grid, cells, strict=True):
        accuracy_panel(axes, runs, metric, looks(everyone), most=6)
        axes.set_ylabel(f"{METRICS[metric]} accuracy (%)")
        title(axes, name)
    below(figure, [*entries(names(everyone), looks(everyone)), *band(*scenarios.values())])
    return figure


def accuracy_panel(
    axes: Axes,
    runs: Runs,
    metric: Metric,
    styles: Mapping[str, MethodStyle],
    along: Along = "classes_seen",
    most: int = 11,
) -> None:
    """A line a variant; from zero up, unless all is far above it."""
    alpha = 0.15 if len(runs) <= 8 else 0.08
    for name, records in runs.items():
        draw(axes, records, metric, styles[name], along, alpha=alpha, zorder=3 if name == "ssil" else 2)
    frame(axes, runs, along, most=most)
    low, high = axes.dataLim.y0, axes.dataLim.y1
    axes.set_ylim(10 * floor(low / 10) if low > 30 else 0, min(100, 10 * ceil(high / 10)))
