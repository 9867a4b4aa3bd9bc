"""Results of many runs: found on disk, named by the settings in which they differ, grouped where only the seed does."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssil.benchmark.record import Record, flat, read_record
from ssil.core.errors import UserError
from ssil.learning.registry import recipes

SEEDS = frozenset({"seed", "class_order"})
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
        groups.setdefault(repr(sorted(settings(run.record).items())), []).append(run)
    firsts = [settings(members[0].record) for members in groups.values()]
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


def settings(record: Record) -> dict[str, Any]:
    """Return the settings that decide a result, by name, without seeds.

    Methods that share the training and branches have records of their own, so they are left out.
    """
    seeds = {*SEEDS, "data_fingerprint"} if record.config.get("validation") else SEEDS  # a seed draws other images
    config = {name: value for name, value in record.config.items() if name not in {*seeds, "riders", "branch"}}
    resolved = {
        "label": record.label,
        "task_sizes": tuple(record.task_sizes),
        "memory": memory(record.config["memory"]),
    }
    return flat(config | resolved | {"options": _defaults(record.config["method"]) | record.config["options"]})


def _defaults(method: str) -> dict[str, Any]:
    """Return the defaults of a built-in method's options, for records older than an option; {} for a user's method."""
    known = recipes().get(method)
    return {name: default for name, (_, default) in known.options.items()} if known else {}


def memory(budget: Mapping[str, Any]) -> str:
    """Describe a recorded memory budget.

    >>> memory({"kind": "fixed", "total": 500}), memory({"kind": "growing", "per_class": 2})
    ('500 exemplars', '2 exemplars a class')
    """
    sizes = {
        "fixed": "{total} exemplars",
        "growing": "{per_class} exemplars a class",
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
