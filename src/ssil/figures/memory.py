"""Exemplars in a batch by the number of tasks (Table S2)."""

from collections.abc import Mapping
from math import nan

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ssil.figures.heat import heat
from ssil.figures.lines import Runs
from ssil.figures.style import panels, title
from ssil.record import Record, summarise
from ssil.schedule import Training
from ssil.statistics import Estimate, estimate

Cell = tuple[int, int]

SPAN = 10.0
"""Colours span at least so many points: small differences look small."""


def replay_sizes(runs: Runs) -> Figure:
    """Average top-1 and top-5 by the exemplars in a batch (N_M, a row) and the stream's increments (T, a column)."""
    cells: dict[Cell, list[Record]] = {}
    for record in (record for records in runs.values() for record in records):
        cells.setdefault(cell_of(record), []).append(record)
    figure, grid = panels(2, 2, 4.2, 3.6)
    for axes, field, name in zip(grid, ("average_top1", "average_top5"), ("top-1", "top-5"), strict=True):
        _panel(axes, {cell: _over_seeds(records, field) for cell, records in cells.items()})
        title(axes, f"average {name} (%)")
    grid[0].set_ylabel("exemplars in a batch, $N_M$")
    return figure


def cell_of(record: Record) -> Cell:
    """N_M and T."""
    size, increments = (record.config["training"][name] for name in ("batch", "increments"))
    usual = Training(batch=size, increments=increments).replay
    return record.config["options"].get("replay_batch") or usual, increments or len(record.task_sizes)


def _over_seeds(records: list[Record], field: str) -> Estimate:
    return estimate([getattr(summarise(record.tasks), field) for record in records])


def _panel(axes: Axes, cells: Mapping[Cell, Estimate]) -> None:
    sizes, counts = (sorted({cell[side] for cell in cells}) for side in (0, 1))
    values = [[cells.get((size, count)) for count in counts] for size in sizes]
    table = [[value.mean if value else nan for value in row] for row in values]
    texts = [[value.text() if value else "" for value in row] for row in values]
    best = max(value.mean for value in cells.values())
    least = min(best - SPAN, *(value.mean for value in cells.values()))
    heat(axes, table, sizes, counts, (least, best), texts)
    axes.set_xlabel("increments of the stream, $T$")
