"""What each part of SS-IL does, in four panels (Fig. 6 and S1)."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from ssil.reporting.figures.confusion import confusion_panel
from ssil.reporting.figures.curves import accuracy_panel
from ssil.reporting.figures.lines import Runs, below, together
from ssil.reporting.figures.score_curves import legend, level, score_panel, solid
from ssil.reporting.figures.style import looks, panels, title


def softmax_ablation(pairs: Mapping[str, Runs]) -> Figure:
    """Scores with and without a separated softmax, a panel a pair of variants; then probabilities and top-5 of all."""
    runs = together(pairs.values())
    figure, grid = panels(len(pairs) + 2, 2, 5.0, 3.6)
    for axes, pair in zip(grid, pairs.values(), strict=False):
        score_panel(axes, pair, "score", looks(runs))
    level(grid[: len(pairs)])
    score_panel(grid[-2], runs, "softmax", looks(runs))
    accuracy_panel(grid[-1], runs, "top5", solid(looks(runs)), "task")
    grid[-1].set_ylabel("top-5 accuracy (%)")
    names = [*(f"scores, {name}" for name in pairs), "probabilities", "accuracy"]
    for axes, letter, name in zip(grid, "abcdefgh", names, strict=False):
        title(axes, f"({letter}) {name}")
    below(figure, legend(*pairs.values()))
    return figure


def replay_ablation(runs: Runs) -> Figure:
    """Scores, confusion and top-5 of SS-IL with and without exemplars in every batch."""
    figure, grid = panels(len(runs) + 2, 2, 5.0, 4.4)
    score_panel(grid[0], runs, "score", looks(runs))
    title(grid[0], "(a) scores")
    for axes, letter, (name, records) in zip(grid[1:-1], "bcdef", runs.items(), strict=False):
        confusion_panel(axes, name, records)
        title(axes, f"({letter}) {axes.get_title(loc='left')}")
    accuracy_panel(grid[-1], runs, "top5", solid(looks(runs)), "task")
    grid[-1].set_ylabel("top-5 accuracy (%)")
    title(grid[-1], f"({'bcdefg'[len(runs)]}) accuracy")
    below(figure, legend(runs))
    return figure
