"""Results of many runs: found on disk, named by their differences, grouped and estimated over seeds."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan, sqrt
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssil.benchmark.record import Record, flat, read_record
from ssil.core.errors import UserError
from ssil.learning.registry import recipes

SEEDS = frozenset({"seed", "class_order", "stream_class_order", "stream_fingerprint"})
"""The settings in which the runs of one variant may differ."""


@dataclass(frozen=True)
class Run:
    """A record and its folder, in which the predictions are too."""

    folder: Path
    record: Record


def find_runs(paths: Iterable[str | Path]) -> list[Run]:
    """Return the runs in these directories and below them, each scorer's; raise UserError if a path has none."""
    given = {path: sorted(path.rglob("record.json")) for path in map(Path, paths)}
    for path in given:
        if not path.exists() or not any(given.values()):
            raise UserError(
                f"run: {path} holds no record.json, nor does a folder in it; give --out directories of runs"
            )
    folders = dict.fromkeys(file.parent for records in given.values() for file in records)
    return [Run(folder, read_record(folder)) for folder in folders]


def variants(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Group runs that differ only in their seeds, and name each group.

    The name is the method, and the settings in which it differs from other groups of that method: `ssil`, or
    `ssil, batches mixed` beside `ssil, batches replay`.
    """
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(repr(sorted(comparable_settings(run.record).items())), []).append(run)
    firsts = [comparable_settings(members[0].record) for members in groups.values()]
    named: dict[str, list[Run]] = {}
    for index, members in enumerate(groups.values()):
        name = _name(index, firsts)
        same = sum(other.partition(" #")[0] == name for other in named)
        named[f"{name} #{same + 1}" if same else name] = members
    return named


def differences(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of the settings that are not equal in all."""
    names = dict.fromkeys(name for one in settings for name in one)
    return [name for name in names if any(one.get(name) != settings[0].get(name) for one in settings)]


def comparable_settings(record: Record) -> dict[str, Any]:
    """Return the settings that decide a result, by name, without seeds.

    Methods that share the training and branches have records of their own, so they are left out.
    """
    seeds = {*SEEDS, "data_fingerprint"} if record.config.get("validation") else SEEDS  # a seed draws other images
    config = {name: value for name, value in record.config.items() if name not in {*seeds, "riders", "branch"}}
    resolved = {
        "label": record.label,
        "task_sizes": recorded_sizes(record),
        "memory": describe_budget(record.memory),
    }
    return flat(config | resolved | {"options": _defaults(record.config["method"]) | record.config["options"]})


def recorded_sizes(record: Record) -> tuple[int, ...] | str:
    """Return the classes of each task; of a stream in which classes return, where a seed may decide them, words."""
    return f"of {len(record.task_sizes)} tasks" if "stream" in record.config else tuple(record.task_sizes)


def _defaults(method: str) -> dict[str, Any]:
    """Return the defaults of a built-in method's options, for records older than an option; {} for a user's method."""
    known = recipes().get(method)
    return {name: default for name, (_, default) in known.options.items()} if known else {}


def describe_budget(budget: Mapping[str, Any]) -> str:
    """Describe a recorded memory budget.

    >>> describe_budget({"kind": "fixed", "total": 500}), describe_budget({"kind": "growing", "per_class": 2})
    ('500 exemplars', '2 exemplars a class')
    """
    sizes = {
        "fixed": "{total} exemplars",
        "growing": "{per_class} exemplars a class",
        "megabytes": "{megabytes:g} MB of model and exemplars",
        "nothing": "no exemplars",
        "unlimited": "all images as exemplars",
    }
    return sizes[budget["kind"]].format(**budget)


def _name(index: int, firsts: Sequence[Mapping[str, Any]]) -> str:
    own = firsts[index]
    rivals = [other for other in firsts if other["label"] == own["label"]]
    shown = [name for name in differences(rivals) if name != "data_fingerprint"]
    return ", ".join([own["label"].rpartition(":")[2], *(_described(name, own.get(name, "-")) for name in shown)])


def _described(name: str, value: Any) -> str:
    return str(value) if name == "memory" else f"{name.rpartition('.')[2].replace('_', ' ')} {value}"


@dataclass(frozen=True)
class Estimate:
    """A mean over runs, their standard deviation, and a confidence interval of the mean.

    Of a single run the deviation is nan, and the interval has no bounds.
    """

    mean: float
    deviation: float
    low: float
    high: float
    count: int

    def text(self, digits: int = 1) -> str:
        """Return the mean and, of two runs or more, the deviation.

        >>> estimate([1.0, 2.0]).text(), estimate([-0.01]).text()
        ('1.5 ± 0.7', '0.0')
        """
        deviation = f" ± {self.deviation:.{digits}f}" if self.count > 1 else ""
        return f"{self.mean:z.{digits}f}{deviation}"


def estimate(values: Sequence[float], level: float = 0.95) -> Estimate:
    """Return the mean, the standard deviation, and Student's t-interval of the mean.

    >>> one = estimate([1.0, 2.0, 3.0])
    >>> one.mean, one.deviation, round(one.low, 2), round(one.high, 2)
    (2.0, 1.0, -0.48, 4.48)
    """
    from scipy.stats import t as student  # takes a second to import

    count, mean = len(values), fmean(values)
    if count == 1:
        return Estimate(mean, nan, -inf, inf, 1)
    deviation = float(np.std(values, ddof=1))  # statistics.stdev fails on nan
    half = float(student.ppf((1 + level) / 2, count - 1)) * deviation / sqrt(count)
    return Estimate(mean, deviation, mean - half, mean + half, count)


def bootstrap(
    values: NDArray[np.float64],
    statistic: Callable[[NDArray[np.float64]], float] = lambda values: float(values.mean()),
    *,
    level: float = 0.95,
    draws: int = 1_000,
    seed: int = 0,
) -> tuple[float, float]:
    """Return a bootstrap interval of a statistic: quantiles over samples of the values with replacement.

    >>> low, high = bootstrap(np.array([0.0, 1.0] * 50))
    >>> 0.35 < low < 0.5 < high < 0.65
    True
    """
    random = np.random.default_rng(seed)
    found = [statistic(values[random.integers(len(values), size=len(values))]) for _ in range(draws)]
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
