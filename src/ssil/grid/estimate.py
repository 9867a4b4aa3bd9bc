"""How long cells are going to take, from how long others took."""

from collections.abc import Mapping
from statistics import fmean

from ssil.grid.cells import Cell


def expected(cell: Cell, known: Mapping[Cell, float]) -> float | None:
    """Seconds of the cells most like it that are known: with another seed, in another scenario, with another method.

    >>> ssil, ft = (Cell("base", row, 0, {}) for row in ("ssil", "ft"))
    >>> expected(Cell("base", "ssil", 1, {}), {ssil: 10.0, ft: 30.0})
    10.0
    >>> expected(Cell("base", "wa", 1, {}), {ssil: 10.0, ft: 30.0})
    20.0
    """
    likes = (
        [value for other, value in known.items() if (other.scenario, other.row) == (cell.scenario, cell.row)],
        [value for other, value in known.items() if other.row == cell.row],
        [value for other, value in known.items() if other.scenario == cell.scenario],
        list(known.values()),
    )
    return next((fmean(values) for values in likes if values), None)


def remaining(cells: list[Cell], known: Mapping[Cell, float], jobs: int) -> float | None:
    """Seconds until all are done by so many processes at once."""
    each = [expected(cell, known) for cell in cells]
    return sum(value or 0.0 for value in each) / jobs if all(each) else None
