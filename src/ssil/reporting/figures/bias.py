"""Bias to the newest task: task confusion (Fig. 2 left, 7, S1 b-c), the previous model's predictions (Fig. 2 right)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import ArrayLike, NDArray

from ssil.benchmark.record import Record
from ssil.learning.metrics import newest_share
from ssil.reporting.figures.lines import Runs, by_method
from ssil.reporting.figures.style import display_name, panel_grid, panel_title

LATEST: dict[str, Any] = {"hatch": "///", "edgecolor": "#999999"}
NUMBER_BOX: dict[str, Any] = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}
EVEN: dict[str, Any] = {"color": "black", "linestyle": (0, (1, 1)), "linewidth": 1.6}


def task_confusion(runs: Runs | Sequence[Record]) -> Figure:
    """Draw true task by predicted task after the last task, each row in percent, one panel per variant."""
    runs = by_method(runs)
    figure, grid = panel_grid(len(runs), 2 if len(runs) == 4 else 3, 4.6, 4.4)
    images = [confusion_panel(axes, *variant) for axes, variant in zip(grid, runs.items(), strict=True)]
    figure.colorbar(images[-1], ax=grid, shrink=0.8, label="% of the true task's test images")
    return figure


def confusion_panel(axes: Axes, name: str, records: Sequence[Record]) -> AxesImage:
    """Draw the task confusion of one variant, summed over its seeds."""
    counts = np.array(confusion_counts(records))
    shares = 100 * counts / np.maximum(counts.sum(1, keepdims=True), 1)
    texts = [[f"{share:.0f}" if len(counts) <= 12 else "" for share in row] for row in shares]
    tasks = range(1, len(counts) + 1)
    image = heat_map(axes, shares, tasks, tasks, (0, 100), texts, size=8)
    axes.set(aspect="equal", xlabel="predicted task", ylabel="true task")
    panel_title(axes, f"{display_name(name)}: {newest_share(counts.tolist()):.0f} % on the newest task")
    return image


def confusion_counts(records: Sequence[Record]) -> list[list[int]]:
    """Return the task confusion after the last task that all records contain, summed over the records."""
    done = min(len(record.tasks) for record in records)
    counts: list[list[int]] = np.sum([record.tasks[done - 1].confusion for record in records], axis=0).tolist()
    return counts


def heat_map(
    axes: Axes,
    table: ArrayLike,
    rows: Sequence[int],
    columns: Sequence[int],
    limits: tuple[float, float],
    texts: Sequence[Sequence[str]],
    size: int = 10,
) -> AxesImage:
    """Draw a table as shades of blue between `limits`, with `texts` in its cells and tick labels from both headers."""
    low, high = limits
    image = axes.imshow(table, cmap="Blues", vmin=low, vmax=high, aspect="auto")
    axes.set_xticks(range(len(columns)), [str(column) for column in columns])
    axes.set_yticks(range(len(rows)), [str(row) for row in rows])
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    for (row, column), value in np.ndenumerate(np.asarray(table)):
        colour = "white" if value > low + 0.6 * (high - low) else "black"
        axes.text(column, row, texts[row][column], ha="center", va="center", color=colour, size=size)
    return image


def teacher_predictions(runs: Runs) -> Figure:
    """Draw the share of each old task among the previous model's predictions on a task's new images.

    One stacked bar per task. The latest old task is hatched and at the bottom; older tasks are lighter and higher.
    """
    figure, grid = panel_grid(len(runs), 3, 5.0, 4.2)
    shades = _shades(max(len(record.task_sizes) for records in runs.values() for record in records) - 1)
    for axes, (name, records) in zip(grid, runs.items(), strict=True):
        _teacher_panel(axes, records, shades)
        panel_title(axes, display_name(name))
    grid[0].set_ylabel("predictions of the model of task $t-1$ (%)")
    tasks = np.arange(1, shades.N + 1)
    scale = ScalarMappable(BoundaryNorm([0.5, *(tasks + 0.5)], shades.N), shades)
    figure.colorbar(scale, ax=grid, shrink=0.8, label="predicted task", ticks=tasks).minorticks_off()
    latest = Patch(facecolor="#dddddd", label="the latest old task", **LATEST)
    even = Line2D([], [], label="its share of the old classes", **EVEN)
    figure.legend(handles=[latest, even], loc="outside lower center", ncols=2, frameon=False)
    return figure


def teacher_shares(records: Sequence[Record]) -> list[NDArray[np.float64]]:
    """Return the old tasks' shares in percent for each task from the second on, oldest first, means over seeds."""
    tasks = zip(*(record.tasks[1:] for record in records), strict=False)
    return [100 * np.mean([task.teacher_ratio or [] for task in seeds], axis=0) for seeds in tasks]


def _shades(count: int) -> ListedColormap:
    return ListedColormap(colormaps["Blues"](np.linspace(0.15, 1, count)))


def _teacher_panel(axes: Axes, records: Sequence[Record], shades: ListedColormap) -> None:
    sizes, found = records[0].task_sizes, teacher_shares(records)
    for task, shares in enumerate(found, 2):
        bottom = 0.0
        for old, share in zip(range(task - 1, 0, -1), shares[::-1], strict=True):
            style = LATEST if old == task - 1 else {"edgecolor": "white"}
            axes.bar(task, share, 0.86, bottom, color=shades(old - 1), linewidth=0.6, **style)
            bottom += share
        even = 100 * sizes[task - 2] / sum(sizes[: task - 1])
        for style in ({"color": "white", "linewidth": 3}, EVEN):
            axes.plot([task - 0.43, task + 0.43], [even, even], **style)
        axes.text(task, shares[-1] - 2, f"{shares[-1]:.0f}", ha="center", va="top", size=8, bbox=NUMBER_BOX)
    axes.set(xlabel="task $t$, whose new images are shown", ylim=(0, 100), xticks=range(2, len(found) + 2))
    axes.spines[["top", "right"]].set_visible(False)
