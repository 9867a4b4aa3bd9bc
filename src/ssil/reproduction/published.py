"""The numbers of the paper's tables, as they are printed."""

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from ssil.reproduction.conditions import Condition
from ssil.reproduction.presets import find_preset

DOUBTFUL = frozenset({("SS-IL, N_M = 16", "top1"), ("SS-IL, N_M = 64", "top1")})
"""Table S2's top-1 for T = 10: most likely misprints (54.3 for 64.3; 68.2 stands in the column beside it too)."""


class Accuracy(NamedTuple):
    """Average incremental accuracies, in percent."""

    top1: float
    top5: float


@cache
def published() -> Mapping[tuple[str, Condition, str], Accuracy]:
    """By data, condition and line.

    >>> published()["imagenet", Condition(), "SS-IL"]
    Accuracy(top1=64.5, top5=86.4)
    """
    rows = csv.DictReader(files("ssil.reproduction").joinpath("published.csv").read_text().splitlines())
    return {
        (row["data"], _condition(row), row["line"]): Accuracy(float(row["top1"]), float(row["top5"])) for row in rows
    }


def _condition(row: Mapping[str, str]) -> Condition:
    level = find_preset(row["data"]).exemplars.index(int(row["exemplars"]))
    return Condition(int(row["tasks"]), level, row["memory"] == "growing", row["base"] == "largebase")
