"""Many runs: found on disk, told apart by the settings in which they differ, put together where only the seed does."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssil.benchmark.record import Record, flat, read_record
from ssil.core.errors import UserError
from ssil.learning.registry import recipes

CHANCE = frozenset({"seed", "class_order"})
"""Settings in which runs differ that are put together."""


@dataclass(frozen=True)
class Run:
    """A record and where it is; its predictions are beside it."""

    folder: Path
    record: Record


def find_runs(paths: Iterable[str | Path]) -> list[Run]:
    """The runs in these directories and below them, with those of further scorers; a UserError if there is none."""
    given = {path: sorted(path.rglob("record.json")) for path in map(Path, paths)}
    for path in given:
        if not path.exists() or not any(given.values()):
            raise UserError(
                f"run: {path} holds no record.json, nor does a folder in it; give --out directories of runs"
            )
    folders = dict.fromkeys(file.parent for records in given.values() for file in records)
    return [Run(folder, read_record(folder)) for folder in folders]


def variants(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs that differ in their seeds alone, under a name: the method, and the settings that tell it from the others.

    The name has only what is needed: `ssil`, or `ssil, batches mixed` beside a `ssil, batches replay`.
    """
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(repr(sorted(settings(run.record).items())), []).append(run)
    firsts = [settings(members[0].record) for members in groups.values()]
    named: dict[str, list[Run]] = {}
    for index, members in enumerate(groups.values()):
        name = _name(index, firsts)
        alike = sum(other.partition(" #")[0] == name for other in named)
        named[f"{name} #{alike + 1}" if alike else name] = members
    return named


def differences(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of the settings that are not the same in all."""
    names = dict.fromkeys(name for one in settings for name in one)
    return [name for name in names if any(one.get(name) != settings[0].get(name) for one in settings)]


def settings(record: Record) -> dict[str, Any]:
    """What was computed, by name, but for chance; riders and branches are runs of their own."""
    chance = {*CHANCE, "data_fingerprint"} if record.config.get("validation") else CHANCE  # which draws other images
    config = {name: value for name, value in record.config.items() if name not in {*chance, "riders", "branch"}}
    said = {"label": record.label, "task_sizes": tuple(record.task_sizes), "memory": memory(record.config["memory"])}
    return flat(config | said | {"options": _defaults(record.config["method"]) | record.config["options"]})


def _defaults(method: str) -> dict[str, Any]:
    """What an option is that a record does not name, for there was none when it was made; no user's code is loaded."""
    known = recipes().get(method)
    return {name: default for name, (_, default) in known.options.items()} if known else {}


def memory(budget: Mapping[str, Any]) -> str:
    """The room for exemplars, by its kind.

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
    said = [name for name in differences(rivals) if name != "data_fingerprint"]
    return ", ".join([own["label"].rpartition(":")[2], *(_said(name, own.get(name, "-")) for name in said)])


def _said(name: str, value: Any) -> str:
    return str(value) if name == "memory" else f"{name.rpartition('.')[2].replace('_', ' ')} {value}"
