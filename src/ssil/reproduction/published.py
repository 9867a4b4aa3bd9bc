"""The numbers that the paper prints in Tables 1 and S2 to S5."""

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from ssil.reproduction.paper_scenarios import DATASETS, Condition

DOUBTFUL = frozenset({("SS-IL, N_M = 16", "top1"), ("SS-IL, N_M = 64", "top1")})
"""Top-1 of Table S2 for T = 10: likely misprints (54.3 instead of 64.3; 68.2 is also printed in the next column)."""


class Accuracy(NamedTuple):
    """Average incremental accuracies, in percent."""

    top1: float
    top5: float


@cache
def published() -> Mapping[tuple[str, Condition, str], Accuracy]:
    """Return the printed accuracies by data set, condition and line.

    >>> published()["imagenet", Condition(), "SS-IL"]
    Accuracy(top1=64.5, top5=86.4)
    """
    rows = csv.DictReader(files("ssil.reproduction").joinpath("published.csv").read_text().splitlines())
    return {
        (row["data"], _condition(row), row["line"]): Accuracy(float(row["top1"]), float(row["top5"])) for row in rows
    }


def _condition(row: Mapping[str, str]) -> Condition:
    _, memories = DATASETS[row["data"]]
    level = memories.index(int(row["exemplars"]))
    return Condition(int(row["tasks"]), level, row["memory"] == "growing", row["base"] == "largebase")
