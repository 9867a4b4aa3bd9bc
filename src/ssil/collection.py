"""Many runs: found on disk, told apart by the settings in which they differ, put together where only the seed does."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssil.errors import UserError
from ssil.record import Record, flat, read_record

CHANCE = frozenset({"seed", "class_order"})
"""Settings in which runs differ that are put together."""


@dataclass(frozen=True)
class Run:
    """A record and where it is; its predictions are beside it."""

    folder: Path
    record: Record


def find_runs(paths: Iterable[str | Path]) -> list[Run]:
    """The runs in these directories and below them, with those of further scorers; a UserError where there is none."""
    found: dict[Path, Run] = {}
    for path in map(Path, paths):
        records = sorted(path.rglob("record.json"))
        if not records:
            raise UserError(
                f"run: {path} holds no record.json, nor does a folder in it; give --out directories of runs"
            )
        found |= {file.parent: Run(file.parent, read_record(file.parent)) for file in records}
    return list(found.values())


def variants(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs that differ in their seeds alone, under a name: the method, and the settings that tell it from the others.

    The name has only what is needed: `ssil`, or `ssil, batches mixed` beside a `ssil, batches replay`.
    """
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(repr(sorted(_settings(run.record).items())), []).append(run)
    firsts = [_settings(members[0].record) for members in groups.values()]
    names = [_name(index, firsts, members[0].record) for index, members in enumerate(groups.values())]
    return dict(zip(names, groups.values(), strict=True))


def differences(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of the settings that are not the same in all."""
    names = dict.fromkeys(name for one in settings for name in one)
    return [name for name in names if any(one.get(name) != settings[0].get(name) for one in settings)]


def _settings(record: Record) -> dict[str, Any]:
    """What was computed, but for chance; riders are runs of their own."""
    config = {name: value for name, value in record.config.items() if name not in {*CHANCE, "riders"}}
    said = {"label": record.label, "task_sizes": tuple(record.task_sizes), "memory": memory(record.config["memory"])}
    return flat(config | said)


def memory(room: Mapping[str, Any]) -> str:
    """The room for exemplars, by its kind.

    >>> memory({"kind": "fixed", "total": 500}), memory({"kind": "nothing"})
    ('500', 'no')
    """
    sizes = {"fixed": "{total}", "growing": "{per_class} a class as", "nothing": "no", "unlimited": "all images as"}
    return sizes[room["kind"]].format(**room)


def _name(index: int, firsts: Sequence[Mapping[str, Any]], record: Record) -> str:
    rivals = [other for other in firsts if other["label"] == firsts[index]["label"]]
    said = [name for name in differences(rivals) if name != "data_fingerprint"]
    parts = [f"{name.rpartition('.')[2].replace('_', ' ')} {firsts[index].get(name, '-')}" for name in said]
    return ", ".join([record.label.rpartition(":")[2], *parts])
