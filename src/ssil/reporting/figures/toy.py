"""A toy: the scores of two old and two new classes under imbalanced gradient steps (Fig. 3)."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle, islice
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from ssil.learning.losses import cross_entropy, separated_cross_entropy
from ssil.reporting.figures.lines import below
from ssil.reporting.figures.style import NEW, OLD, clean, panels, title

Loss = Callable[[Tensor, Tensor], Tensor]

START = (0.5, 0.5, 0.0, 0.0)
"""What task 1 has left: scores of two old classes; those of two new ones."""

LOSSES: dict[str, Loss] = {
    "CE: one softmax": cross_entropy,
    "CE-SS: separated softmax": partial(separated_cross_entropy, old=2),
}


def imbalanced_steps(rounds: int = 6, new: int = 8) -> Figure:
    """Four scores, step by step: in each round many images of the new classes, then one exemplar of an old one."""
    samples = stream(rounds, new)
    figure, grid = panels(2, 2, 5.0, 3.6)
    paths = [descend(loss, samples) for loss in LOSSES.values()]
    for axes, name, path in zip(grid, LOSSES, paths, strict=True):
        _panel(axes, path, samples)
        title(axes, name)
        axes.set_ylim(*limits(paths))
    grid[0].set_ylabel("score")
    entries, labels = grid[0].get_legend_handles_labels()
    below(figure, list(dict(zip(labels, entries, strict=True)).values()))
    return figure


def stream(rounds: int, new: int) -> list[int]:
    """The samples' classes: 0 and 1 are old, 2 and 3 new; each side takes its classes in turn.

    >>> stream(rounds=2, new=3)
    [2, 3, 2, 0, 3, 2, 3, 1]
    """
    many = cycle((2, 3))
    return [label for turn in range(rounds) for label in (*islice(many, new), turn % 2)]


def descend(loss: Loss, samples: Sequence[int], lr: float = 0.2) -> Tensor:
    """The scores (steps + 1, 4) of a model that is nothing but four scores, the same for every image."""
    scores = torch.tensor(START, requires_grad=True)
    path = [scores.detach().clone()]
    for label in samples:
        (slope,) = torch.autograd.grad(loss(scores.unsqueeze(0), torch.tensor([label])).sum(), scores)
        scores = (scores - lr * slope).detach().requires_grad_()
        path.append(scores.detach())
    return torch.stack(path)


def limits(paths: Sequence[Tensor]) -> tuple[float, float]:
    """One scale for all."""
    return min(map(Tensor.min, paths)).item() - 0.2, max(map(Tensor.max, paths)).item() + 0.2


def _panel(axes: Axes, path: Tensor, samples: Sequence[int]) -> None:
    for step, label in enumerate(samples):
        if label < 2:
            axes.axvspan(step, step + 1, color="#d0d0d0", linewidth=0, label="step on an exemplar")
    for label in range(4):
        age, colour, dashes = ("old", OLD, "-") if label < 2 else ("new", NEW, "--")
        marker: dict[str, Any] = {"marker": "os^D"[label], "markevery": (4 + label, 9)}
        axes.plot(path[:, label], color=colour, linestyle=dashes, label=f"{age} class {label + 1}", **marker)
    clean(axes)
    axes.set_xlabel("gradient step")
