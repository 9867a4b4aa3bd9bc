"""Figures that need no run: GKD and TKD (Fig. 1), imbalanced gradient steps (Fig. 3), SS-IL's loss (Fig. 4)."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle, islice
from typing import Any

import torch
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle
from torch import Tensor

from ssil.learning.losses import cross_entropy, separated_cross_entropy
from ssil.reporting.figures.lines import legend_below
from ssil.reporting.figures.style import NEW, OLD, hide_frame, panel_grid, panel_title

Loss = Callable[[Tensor, Tensor], Tensor]
Point = tuple[float, float]

TEACHER_SCORES = ((0.9, 0.2, 1.0), (0.6, 1.5, 0.8), (2.6, 3.4, 2.2))
"""Scores of an old model for one image, one row per task; those of the latest task are too high."""

SHADES = [colormaps["Blues"](depth) for depth in (0.25, 0.55, 0.9)]
"""Colours of three tasks, the oldest the lightest."""

FIRST_SCORES = (0.5, 0.5, 0.0, 0.0)
"""Scores after task 1: two old classes, then two new ones."""

LOSSES: dict[str, Loss] = {
    "CE: one softmax": cross_entropy,
    "CE-SS: separated softmax": partial(separated_cross_entropy, old=2),
}


def distillations() -> Figure:
    """Draw Fig. 1: soft targets from an old model's scores by one softmax (GKD), and by one softmax per task (TKD)."""
    scores = torch.tensor(TEACHER_SCORES)
    figure, (left, right, below_left, below_right) = panel_grid(4, 2, 5.2, 2.5)
    for axes, name in ((left, "GKD: one softmax over all old classes"), (right, "TKD: a softmax for each old task")):
        _bars(axes, scores, "the old model's scores")
        panel_title(axes, name)
    whole = scores.flatten().softmax(0).view_as(scores)
    _targets(below_left, whole, [(0, 2)], "one KL divergence: the latest task's lead is taught")
    each = [(0, 0), (1, 1), (2, 2)]
    _targets(below_right, scores.softmax(1), each, "a sum of KL divergences: no task's lead is taught")
    return figure


def _targets(axes: Axes, targets: Tensor, spans: list[tuple[int, int]], loss: str) -> None:
    """Draw soft targets with a grey background behind tasks that share a softmax."""
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


def imbalanced_steps(rounds: int = 6, new: int = 8) -> Figure:
    """Draw Fig. 3: four scores, step by step; each round has `new` images of new classes, then one exemplar."""
    samples = imbalanced_stream(rounds, new)
    figure, grid = panel_grid(2, 2, 5.0, 3.6)
    paths = [descend(loss, samples) for loss in LOSSES.values()]
    for axes, name, path in zip(grid, LOSSES, paths, strict=True):
        _score_paths(axes, path, samples)
        panel_title(axes, name)
        axes.set_ylim(*shared_limits(paths))
    grid[0].set_ylabel("score")
    entries, labels = grid[0].get_legend_handles_labels()
    legend_below(figure, list(dict(zip(labels, entries, strict=True)).values()))
    return figure


def imbalanced_stream(rounds: int, new: int) -> list[int]:
    """Return the samples' classes: 0 and 1 are old, 2 and 3 new; old and new classes each alternate.

    >>> imbalanced_stream(rounds=2, new=3)
    [2, 3, 2, 0, 3, 2, 3, 1]
    """
    many = cycle((2, 3))
    return [label for turn in range(rounds) for label in (*islice(many, new), turn % 2)]


def descend(loss: Loss, samples: Sequence[int], lr: float = 0.2) -> Tensor:
    """Return the scores (steps + 1, 4) of a model whose only parameters are four scores, equal for all images."""
    scores = torch.tensor(FIRST_SCORES, requires_grad=True)
    path = [scores.detach().clone()]
    for label in samples:
        (slope,) = torch.autograd.grad(loss(scores.unsqueeze(0), torch.tensor([label])).sum(), scores)
        scores = (scores - lr * slope).detach().requires_grad_()
        path.append(scores.detach())
    return torch.stack(path)


def shared_limits(paths: Sequence[Tensor]) -> tuple[float, float]:
    """Return limits of the vertical axis that fit all paths."""
    return min(map(Tensor.min, paths)).item() - 0.2, max(map(Tensor.max, paths)).item() + 0.2


def _score_paths(axes: Axes, path: Tensor, samples: Sequence[int]) -> None:
    for step, label in enumerate(samples):
        if label < 2:
            axes.axvspan(step, step + 1, color="#d0d0d0", linewidth=0, label="step on an exemplar")
    for label in range(4):
        age, colour, dashes = ("old", OLD, "-") if label < 2 else ("new", NEW, "--")
        marker: dict[str, Any] = {"marker": "os^D"[label], "markevery": (4 + label, 9)}
        axes.plot(path[:, label], color=colour, linestyle=dashes, label=f"{age} class {label + 1}", **marker)
    hide_frame(axes)
    axes.set_xlabel("gradient step")


def separated_softmax() -> Figure:
    """Draw Fig. 4: new images and exemplars in every batch, one softmax per side, distillation task by task."""
    figure, (axes,) = panel_grid(1, 1, 11, 4.6)
    axes.set(xlim=(0, 21.6), ylim=(1.2, 9.6), aspect="equal")
    axes.axis("off")
    panel_title(axes, "SS-IL: loss = CE-SS + TKD")
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
    """Draw a row of three scores per task; the fourth task is new."""
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
