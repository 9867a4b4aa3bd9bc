"""Accuracy along the stream."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ssil.figures.style import clean, looks, method_of
from ssil.record import Record


def accuracy_curves(records: Sequence[Record]) -> Figure:
    """Top-1 over all classes seen, after each task, a line a run."""
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    styles = looks(map(method_of, records))
    for record in records:
        style = styles[method_of(record)]
        axes.plot(
            [task.classes_seen for task in record.tasks],
            [task.top1 for task in record.tasks],
            label=_label(record),
            color=style.colour,
            marker=style.marker,
            linestyle=style.dashes,
            markersize=6,
            markeredgecolor="white",
            linewidth=2,
        )
    _frame(axes, max(records, key=lambda record: len(record.tasks)))
    return figure


def _label(record: Record) -> str:
    values = [task.top1 for task in record.tasks]
    return f"{method_of(record)}: {sum(values) / len(values):.1f} on average, {values[-1]:.1f} at the end"


def _frame(axes: Axes, longest: Record) -> None:
    clean(axes)
    axes.set_ylim(0, 100)
    axes.set_xticks([task.classes_seen for task in longest.tasks])
    axes.set_xlabel("classes seen")
    axes.set_ylabel("top-1 accuracy over all classes seen (%)")
    stream = f"{sum(longest.task_sizes)} classes in {len(longest.task_sizes)} tasks"
    axes.set_title(f"{longest.config['dataset']}: {stream}", loc="left", weight="bold")
    axes.legend(frameon=False, loc="best", handlelength=3.5)
