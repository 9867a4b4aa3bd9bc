"""A table in shades, with its numbers."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from numpy.typing import ArrayLike

Texts = Sequence[Sequence[str]]


def heat(
    axes: Axes,
    table: ArrayLike,
    rows: Sequence[int],
    columns: Sequence[int],
    limits: tuple[float, float],
    texts: Texts,
    size: int = 10,
) -> AxesImage:
    """The darker, the more; `texts` go into the cells, white on dark."""
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
