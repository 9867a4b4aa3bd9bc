"""Exemplars in a batch by the number of tasks (Table S2)."""

from collections.abc import Iterable
from math import nan
from typing import NamedTuple

from matplotlib.figure import Figure

from ssil.benchmark.estimates import estimate
from ssil.benchmark.record import Record, summarise
from ssil.learning.schedule import Training
from ssil.reporting.figures.heatmap import heat
from ssil.reporting.figures.lines import Runs
from ssil.reporting.figures.style import panels, title

Cell = tuple[int, int]

SPAN = 10.0
"""Colours span at least so many points: small differences look small."""


class Averages(NamedTuple):
    """Means over seeds, a row for each N_M, a column for each T; nan and no text where there is no run."""

    sizes: list[int]
    increments: list[int]
    table: list[list[float]]
    texts: list[list[str]]
    limits: tuple[float, float]


def replay_sizes(runs: Runs) -> Figure:
    """Average top-1 and top-5 by the exemplars in a batch (N_M, a row) and the stream's increments (T, a column)."""
    records = [record for records in runs.values() for record in records]
    figure, grid = panels(2, 2, 4.2, 3.6)
    for axes, k in zip(grid, (1, 5), strict=True):
        found = averages(records, k)
        heat(axes, found.table, found.sizes, found.increments, found.limits, found.texts)
        axes.set_xlabel("increments of the stream, $T$")
        title(axes, f"average top-{k} (%)")
    grid[0].set_ylabel("exemplars in a batch, $N_M$")
    return figure


def averages(records: Iterable[Record], k: int) -> Averages:
    """Of the average top-k accuracy."""
    runs: dict[Cell, list[float]] = {}
    for record in records:
        runs.setdefault(cell_of(record), []).append(getattr(summarise(record.tasks), f"average_top{k}"))
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


def cell_of(record: Record) -> Cell:
    """N_M and T."""
    size, increments = (record.config["training"][name] for name in ("batch", "increments"))
    usual = Training(batch=size, increments=increments).replay
    return record.config["options"].get("replay_batch") or usual, increments or len(record.task_sizes)
