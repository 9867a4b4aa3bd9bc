"""How figures look: one colour and marker for a method wherever it appears, readable without colour."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ssil.record import Record


@dataclass(frozen=True)
class Look:
    """How a method is drawn."""

    colour: str
    marker: str
    dashes: str


COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
"""Okabe and Ito's palette, which the common kinds of colour blindness keep apart; yellow is too pale for paper."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.")

KNOWN = ("ssil", "ft", "ce_gkd", "ce_tkd", "ce_ss", "ce", "joint", "er", "lwf")
"""Methods that keep their look in every figure; any other gets the next free one."""


def look(index: int) -> Look:
    """The look of this number; the first 168 are all different."""
    return Look(*(kinds[index % len(kinds)] for kinds in (COLOURS, MARKERS, DASHES)))


def looks(methods: Iterable[str]) -> dict[str, Look]:
    """The look of each method.

    >>> looks(["mine", "ft"]) == {"ft": look(1), "mine": look(len(KNOWN))}
    True
    """
    present = set(methods)
    others = sorted(present.difference(KNOWN))
    return {method: look(index) for index, method in enumerate((*KNOWN, *others)) if method in present}


def method_of(record: Record) -> str:
    """The method's name in a legend; of a method in a file only its own name."""
    return record.label.rpartition(":")[2]


def clean(axes: Axes) -> None:
    """Only the axes that carry numbers, and a faint horizontal grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)


def save(figure: Figure, path: Path) -> Path:
    """Write a figure in the format that its name ends in, and say where it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=160, bbox_inches="tight")
    return path
