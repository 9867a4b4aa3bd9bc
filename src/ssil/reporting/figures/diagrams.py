"""Two drawings: the two kinds of distillation (Fig. 1), and SS-IL's loss (Fig. 4)."""

from typing import Any

import torch
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle
from torch import Tensor

from ssil.reporting.figures.style import NEW, OLD, panels, title

SCORES = ((0.9, 0.2, 1.0), (0.6, 1.5, 0.8), (2.6, 3.4, 2.2))
"""An old model's scores for an image, a row a task; those of the latest task are too high."""

SHADES = [colormaps["Blues"](depth) for depth in (0.25, 0.55, 0.9)]
"""The older a task, the lighter."""

Point = tuple[float, float]


def distillations() -> Figure:
    """From the old model's scores to soft targets: by one softmax (GKD), or by one for each task (TKD)."""
    scores = torch.tensor(SCORES)
    figure, (left, right, below_left, below_right) = panels(4, 2, 5.2, 2.5)
    for axes, name in ((left, "GKD: one softmax over all old classes"), (right, "TKD: a softmax for each old task")):
        _bars(axes, scores, "the old model's scores")
        title(axes, name)
    whole = scores.flatten().softmax(0).view_as(scores)
    _targets(below_left, whole, [(0, 2)], "one KL divergence: the latest task's lead is taught")
    each = [(0, 0), (1, 1), (2, 2)]
    _targets(below_right, scores.softmax(1), each, "a sum of KL divergences: no task's lead is taught")
    return figure


def _targets(axes: Axes, targets: Tensor, spans: list[tuple[int, int]], loss: str) -> None:
    """Soft targets, with a grey ground under what shares a softmax."""
    _bars(axes, targets, "soft targets")
    axes.set(ylim=(0, 0.75), xlabel=loss)
    for first, last in spans:
        axes.axvspan(3.6 * first - 0.65, 3.6 * last + 2.65, color="#e8e8e8", zorder=0)
    for task, share in enumerate(targets.sum(1).tolist()):
        axes.text(3.6 * task + 1, 0.68, f"{100 * share:.0f} %", ha="center", va="center", weight="bold")


def _bars(axes: Axes, values: Tensor, name: str) -> None:
    for task, row in enumerate(values.tolist()):
        places = [3.6 * task + place for place in range(3)]
        axes.bar(places, row, color=SHADES[task], edgecolor="#444444", linewidth=0.6)
    axes.set_xticks([1, 4.6, 8.2], ["task 1", "task 2", "task 3, the latest"])
    axes.set(ylabel=name, yticks=[], xlim=(-0.8, 10))
    axes.tick_params(length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)


def separated_softmax() -> Figure:
    """SS-IL: new images and exemplars in every batch, a softmax for each side, distillation task by task."""
    figure, (axes,) = panels(1, 1, 11, 4.6)
    axes.set(xlim=(0, 21.6), ylim=(1.2, 9.6), aspect="equal")
    axes.axis("off")
    title(axes, "SS-IL: loss = CE-SS + TKD")
    _batch(axes)
    _box(axes, (5.2, 6.6), "old model $\\theta_{t-1}$,\nfrozen", linestyle="--")
    _box(axes, (5.2, 3.6), "model $\\theta$,\nlearning task $t$")
    for height in (7.4, 4.4):
        _arrow(axes, (3.6, 4.4), (5.1, height))
        _arrow(axes, (8.7, height), (9.8, height))
    _scores(axes, 7.0, tasks=3)
    _scores(axes, 4.0, tasks=4)
    _distillation(axes)
    _separation(axes)
    return figure


def _batch(axes: Axes) -> None:
    axes.text(0.1, 6.6, "every batch", va="bottom", weight="bold")
    axes.add_patch(Rectangle((0.1, 2.4), 3.4, 4.0, fill=False, edgecolor="#333333"))
    for name, colour, height, count in (("$N_D$ new images", NEW, 5.4, 4), ("$N_M$ exemplars", OLD, 3.5, 2)):
        for place in range(count):
            axes.add_patch(Rectangle((0.35 + 0.76 * place, height), 0.62, 0.62, facecolor=colour))
        axes.text(0.35, height - 0.2, name, va="top")


def _scores(axes: Axes, height: float, tasks: int) -> None:
    """A row of scores, task by task; the fourth task is new."""
    for task in range(tasks):
        for place in range(3):
            corner, colour = (10.0 + 3.0 * task + 0.8 * place, height), NEW if task == 3 else OLD
            axes.add_patch(Rectangle(corner, 0.8, 0.8, facecolor=colour, edgecolor="white", linewidth=1.5))


def _distillation(axes: Axes) -> None:
    axes.text(14.2, 8.8, "TKD: a softmax for each old task, on every image", ha="center", weight="bold")
    for task, name in enumerate(("task 1", "…", "task $t-1$")):
        middle = 11.2 + 3.0 * task
        axes.text(middle, 7.95, name, ha="center", va="bottom")
        _arrow(axes, (middle, 6.8), (middle, 5.0), style="<|-|>")
        axes.text(middle + 0.15, 5.9, "KL", va="center")
    axes.text(20.2, 4.95, "task $t$", ha="center", va="bottom")


def _separation(axes: Axes) -> None:
    old, new = "exemplars: softmax over old classes", "new images:\nsoftmax over\nnew classes"
    for left, right, text in ((10.0, 18.4, old), (19.0, 21.4, new)):
        axes.plot([left, left, right, right], [3.8, 3.5, 3.5, 3.8], color="#333333", linewidth=1.4)
        axes.text((left + right) / 2, 3.3, text, ha="center", va="top")
    axes.text(14.2, 1.9, "CE-SS: no gradient for the other side's scores", ha="center", weight="bold")


def _box(axes: Axes, corner: Point, text: str, **style: Any) -> None:
    axes.add_patch(FancyBboxPatch(corner, 3.4, 1.6, "round,pad=0,rounding_size=0.25", facecolor="none", **style))
    axes.text(corner[0] + 1.7, corner[1] + 0.8, text, ha="center", va="center")


def _arrow(axes: Axes, start: Point, end: Point, style: str = "-|>") -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": style, "color": "#333333", "linewidth": 1.4})
