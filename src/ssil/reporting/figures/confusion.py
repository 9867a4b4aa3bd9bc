"""Which task the predictions fall on (Fig. 2 left, 7, S1 b and c)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from ssil.benchmark.record import Record
from ssil.learning.metrics import newest_share
from ssil.reporting.figures.heatmap import heat
from ssil.reporting.figures.lines import Runs, grouped
from ssil.reporting.figures.style import panels, shown, title


def task_confusion(runs: Runs | Sequence[Record]) -> Figure:
    """True task by predicted task after the last one, each row in percent, the variants side by side."""
    runs = grouped(runs)
    figure, grid = panels(len(runs), 2 if len(runs) == 4 else 3, 4.6, 4.4)
    images = [confusion_panel(axes, *variant) for axes, variant in zip(grid, runs.items(), strict=True)]
    figure.colorbar(images[-1], ax=grid, shrink=0.8, label="% of the true task's test images")
    return figure


def confusion_panel(axes: Axes, name: str, records: Sequence[Record]) -> AxesImage:
    """One variant; the counts of its seeds are added up."""
    done = min(len(record.tasks) for record in records)
    counts = np.sum([record.tasks[done - 1].confusion for record in records], axis=0)
    shares = 100 * counts / np.maximum(counts.sum(1, keepdims=True), 1)
    texts = [[f"{share:.0f}" if done <= 12 else "" for share in row] for row in shares]
    tasks = range(1, done + 1)
    image = heat(axes, shares, tasks, tasks, (0, 100), texts, size=8)
    axes.set(aspect="equal", xlabel="predicted task", ylabel="true task")
    title(axes, f"{shown(name)}: {newest_share(counts.tolist()):.0f} % on the newest task")
    return image
