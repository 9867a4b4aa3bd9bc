"""Ablations of SS-IL: the separated softmax (Fig. 6), exemplars in every batch (Fig. S1), their number (Table S2)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import nan
from typing import Any, Literal, NamedTuple

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ssil.benchmark.record import Record, summarise
from ssil.benchmark.results import estimate
from ssil.learning.schedule import Training
from ssil.reporting.figures import lines
from ssil.reporting.figures.bias import confusion_panel, heat_map
from ssil.reporting.figures.curves import accuracy_panel
from ssil.reporting.figures.lines import Runs
from ssil.reporting.figures.style import MethodStyle, method_styles, panel_grid, panel_title

AGES: dict[str, dict[str, Any]] = {
    "old": {"linestyle": "-"},
    "new": {"linestyle": "--", "markerfacecolor": "white", "markeredgewidth": 1.3},
}
"""Lines of old classes are solid with filled markers, those of new classes dashed with hollow ones."""

SPAN = 10.0
"""Smallest range of accuracies, in points, that the colours of `replay_sizes` span: small differences look small."""


def softmax_ablation(pairs: Mapping[str, Runs]) -> Figure:
    """Draw Fig. 6: scores of each pair of variants (a, b), then probabilities (c) and top-5 (d) of all variants."""
    runs = lines.merged(pairs.values())
    figure, grid = panel_grid(len(pairs) + 2, 2, 5.0, 3.6)
    for axes, pair in zip(grid, pairs.values(), strict=False):
        _score_panel(axes, pair, "score", method_styles(runs))
    _share_limits(grid[: len(pairs)])
    _score_panel(grid[-2], runs, "softmax", method_styles(runs))
    _top5_panel(grid[-1], runs)
    names = [*(f"scores, {name}" for name in pairs), "probabilities", "accuracy"]
    for axes, letter, name in zip(grid, "abcdefgh", names, strict=False):
        panel_title(axes, f"({letter}) {name}")
    lines.legend_below(figure, _legend(*pairs.values()))
    return figure


def replay_ablation(runs: Runs) -> Figure:
    """Draw Fig. S1: scores, task confusion and top-5 of SS-IL with and without exemplars in every batch."""
    figure, grid = panel_grid(len(runs) + 2, 2, 5.0, 4.4)
    _score_panel(grid[0], runs, "score", method_styles(runs))
    panel_title(grid[0], "(a) scores")
    for axes, letter, (name, records) in zip(grid[1:-1], "bcdef", runs.items(), strict=False):
        confusion_panel(axes, name, records)
        panel_title(axes, f"({letter}) {axes.get_title(loc='left')}")
    _top5_panel(grid[-1], runs)
    panel_title(grid[-1], f"({'bcdefg'[len(runs)]}) accuracy")
    lines.legend_below(figure, _legend(runs))
    return figure


def _score_panel(axes: Axes, runs: Runs, kind: Literal["score", "softmax"], styles: Mapping[str, MethodStyle]) -> None:
    """Draw the mean score (or probability) of old and of new classes after each task from the second on."""
    for name, records in runs.items():
        for age, line in AGES.items():
            edge = {"markeredgecolor": styles[name].colour} if age == "new" else {}
            lines.draw(axes, records, f"{kind}_{age}", styles[name], "task", since=2, **line | edge)
    lines.stream_axis(axes, runs, "task", since=2)
    axes.set_ylabel(f"mean {'score' if kind == 'score' else 'probability'} over test images")
    if kind == "score":
        axes.update_datalim([(2, -1), (2, 1)])
        axes.autoscale_view()


def _top5_panel(axes: Axes, runs: Runs) -> None:
    accuracy_panel(axes, runs, "top5", _solid(method_styles(runs)), "task")
    axes.set_ylabel("top-5 accuracy (%)")


def _share_limits(grid: Sequence[Axes]) -> None:
    """Give all panels the same vertical limits."""
    lows, highs = zip(*(axes.get_ylim() for axes in grid), strict=True)
    for axes in grid:
        axes.set_ylim(min(lows), max(highs))


def _legend(*groups: Runs) -> list[Artist]:
    """Return one entry per variant and one for each of old and new classes."""
    runs = lines.merged(groups)
    plain = {"color": "#444444", "marker": "o", "markeredgecolor": "#444444"}
    ages = [Line2D([], [], label=f"{age} classes", **plain | line) for age, line in AGES.items()]
    return lines.legend_entries(lines.display_names(runs), _solid(method_styles(runs)), groups, ages)


def _solid(styles: Mapping[str, MethodStyle]) -> dict[str, MethodStyle]:
    """Return the styles with solid lines, for figures in which dashes stand for new classes."""
    return {name: replace(style, dashes="-") for name, style in styles.items()}


class Averages(NamedTuple):
    """Average accuracies over seeds: one row per N_M, one column per T; nan and an empty text without a run."""

    sizes: list[int]
    increments: list[int]
    table: list[list[float]]
    texts: list[list[str]]
    limits: tuple[float, float]


def replay_sizes(runs: Runs) -> Figure:
    """Draw Table S2: average top-1 and top-5 by exemplars in a batch (N_M, rows) and increments (T, columns)."""
    records = [record for records in runs.values() for record in records]
    figure, grid = panel_grid(2, 2, 4.2, 3.6)
    for axes, k in zip(grid, (1, 5), strict=True):
        found = replay_averages(records, k)
        heat_map(axes, found.table, found.sizes, found.increments, found.limits, found.texts)
        axes.set_xlabel("increments of the stream, $T$")
        panel_title(axes, f"average top-{k} (%)")
    grid[0].set_ylabel("exemplars in a batch, $N_M$")
    return figure


def replay_averages(records: Iterable[Record], k: int) -> Averages:
    """Return the average top-k accuracies of records by N_M and T."""
    runs: dict[tuple[int, int], list[float]] = {}
    for record in records:
        runs.setdefault(replay_cell(record), []).append(getattr(summarise(record.tasks), f"average_top{k}"))
    cells = {cell: estimate(values) for cell, values in runs.items()}
    sizes, increments = (sorted({cell[side] for cell in cells}) for side in (0, 1))
    values = [[cells.get((size, count)) for count in increments] for size in sizes]
    best = max(value.mean for value in cells.values())
    least = min(best - SPAN, *(value.mean for value in cells.values()))
    return Averages(
        sizes,
        increments,
        [[value.mean if value else nan for value in row] for row in values],
        [[value.text() if value else "" for value in row] for row in values],
        (least, best),
    )


def replay_cell(record: Record) -> tuple[int, int]:
    """Return the record's N_M (exemplars in a batch) and T (increments of the stream)."""
    size, increments = (record.config["training"][name] for name in ("batch", "increments"))
    usual = Training(batch=size, increments=increments).replay
    return record.config["options"].get("replay_batch") or usual, increments or len(record.task_sizes)
