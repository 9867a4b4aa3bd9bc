"""What the old model takes new images for (Fig. 2 right)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from ssil.benchmark.record import Record
from ssil.reporting.figures.lines import Runs
from ssil.reporting.figures.style import panels, shown, title

LATEST: dict[str, Any] = {"hatch": "///", "hatchcolor": "#999999"}
PLATE: dict[str, Any] = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}
EVEN: dict[str, Any] = {"color": "black", "linestyle": (0, (1, 1)), "linewidth": 1.6}


def teacher_predictions(runs: Runs) -> Figure:
    """The share of each old task among the previous model's predictions on a task's new images, a bar a task.

    The latest old task is hatched and stands on the ground; the older a task, the lighter it is and the higher up.
    """
    figure, grid = panels(len(runs), 3, 5.0, 4.2)
    shades = _shades(max(len(record.task_sizes) for records in runs.values() for record in records) - 1)
    for axes, (name, records) in zip(grid, runs.items(), strict=True):
        _panel(axes, records, shades)
        title(axes, shown(name))
    grid[0].set_ylabel("predictions of the model of task $t-1$ (%)")
    tasks = np.arange(1, shades.N + 1)
    scale = ScalarMappable(BoundaryNorm([0.5, *(tasks + 0.5)], shades.N), shades)
    figure.colorbar(scale, ax=grid, shrink=0.8, label="predicted task", ticks=tasks).minorticks_off()
    latest = Patch(facecolor="#dddddd", label="the latest old task", **LATEST)
    even = Line2D([], [], label="its share of the old classes", **EVEN)
    figure.legend(handles=[latest, even], loc="outside lower center", ncols=2, frameon=False)
    return figure


def shares(records: Sequence[Record]) -> list[NDArray[np.float64]]:
    """Of each task from the second on: the old tasks' shares in percent, the oldest first, means over seeds."""
    tasks = zip(*(record.tasks[1:] for record in records), strict=False)
    return [100 * np.mean([task.teacher_ratio for task in seeds], axis=0) for seeds in tasks]


def _shades(count: int) -> ListedColormap:
    return ListedColormap(colormaps["Blues"](np.linspace(0.15, 1, count)))


def _panel(axes: Axes, records: Sequence[Record], shades: ListedColormap) -> None:
    sizes, found = records[0].task_sizes, shares(records)
    for task, parts in enumerate(found, 2):
        ground = 0.0
        for old, part in zip(range(task - 1, 0, -1), parts[::-1], strict=True):
            hatch = LATEST if old == task - 1 else {}
            axes.bar(task, part, 0.86, ground, color=shades(old - 1), edgecolor="white", linewidth=0.6, **hatch)
            ground += part
        even = 100 * sizes[task - 2] / sum(sizes[: task - 1])
        for style in ({"color": "white", "linewidth": 3}, EVEN):
            axes.plot([task - 0.43, task + 0.43], [even, even], **style)
        axes.text(task, parts[-1] - 2, f"{parts[-1]:.0f}", ha="center", va="top", size=8, bbox=PLATE)
    axes.set(xlabel="task $t$, whose new images are shown", ylim=(0, 100), xticks=range(2, len(found) + 2))
    axes.spines[["top", "right"]].set_visible(False)
