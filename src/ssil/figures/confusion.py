"""Which task the predictions fall on."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import NDArray

from ssil.figures.style import method_of
from ssil.metrics import newest_share
from ssil.record import Record

Table = NDArray[np.float64]


def task_confusion(records: Sequence[Record]) -> Figure:
    """True task by predicted task after the last one, each row in percent, the runs side by side."""
    figure = Figure(figsize=(0.8 + 4.2 * len(records), 4.4), layout="constrained")
    row = figure.subplots(1, len(records), squeeze=False, sharey=True)[0]
    images = [_panel(axes, record) for axes, record in zip(row, records, strict=True)]
    row[0].set_ylabel("true task")
    figure.colorbar(images[-1], ax=row, shrink=0.8, label="% of the true task's test images")
    return figure


def _panel(axes: Axes, record: Record) -> AxesImage:
    counts = record.tasks[-1].confusion
    shares = _row_percent(counts)
    tasks = range(1, len(shares) + 1)
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=100)
    axes.set_xticks(range(len(tasks)), [str(task) for task in tasks])
    axes.set_yticks(range(len(tasks)), [str(task) for task in tasks])
    axes.set_xlabel("predicted task")
    axes.set_title(f"{method_of(record)}: {newest_share(counts):.0f} % on the newest task", loc="left", weight="bold")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    if len(shares) <= 12:
        _write_numbers(axes, shares)
    return image


def _row_percent(counts: Sequence[Sequence[int]]) -> Table:
    table = np.asarray(counts, dtype=np.float64)
    shares: Table = 100 * table / np.maximum(table.sum(1, keepdims=True), 1)
    return shares


def _write_numbers(axes: Axes, shares: Table) -> None:
    for (true, predicted), share in np.ndenumerate(shares):
        colour = "white" if share > 60 else "black"
        axes.text(predicted, true, f"{share:.0f}", ha="center", va="center", size=8, color=colour)
