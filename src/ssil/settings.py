"""Settings over settings: flags over a file, a method's over a scenario's."""

import json
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ssil.config import RunConfig
from ssil.schedule import scale_milestones

_DISPLACES = {
    "memory": {"memory_per_class"},
    "memory_per_class": {"memory"},
    "tasks": {"task_sizes"},
    "large_base": {"task_sizes"},
    "task_sizes": {"tasks", "large_base"},
}
"""What a setting takes the place of, where it is given on top of others."""


def by_name(settings: Mapping[str, Any]) -> dict[str, Any]:
    """With fields called by their names, not by their aliases."""
    names = {field.alias: name for name, field in RunConfig.model_fields.items() if field.alias}
    return {names.get(key, key): value for key, value in settings.items()}


def over(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """`top` over `base`: a setting also takes the place of those that would contradict it; options are merged.

    Where the epochs change, milestones and later epochs of the base follow.

    >>> over({"memory": 500, "tasks": 10}, {"memory_per_class": 20})
    {'tasks': 10, 'memory_per_class': 20}
    >>> over({"epochs": 100, "milestones": [40, 80]}, {"epochs": 10})
    {'epochs': 10, 'milestones': (4, 8)}
    """
    if "epochs" in base and "epochs" in top:
        with suppress(ValueError, TypeError):  # what `RunConfig` is going to refuse
            base = _stretched(base, int(base["epochs"]), int(top["epochs"]))
    displaced = {rival for name in top for rival in _DISPLACES.get(name, ())} - set(top)
    merged = {name: value for name, value in base.items() if name not in displaced} | dict(top)
    if "options" in base:  # a table, or what `RunConfig` is going to refuse
        table = base["options"]
        merged["options"] = table | top.get("options", {}) if isinstance(table, dict) else table
    return merged


def _stretched(settings: Mapping[str, Any], epochs: int, wanted: int) -> dict[str, Any]:
    """The settings for `wanted` epochs instead of `epochs`."""
    changed = dict(settings)
    if "milestones" in changed:
        changed["milestones"] = scale_milestones(tuple(changed["milestones"]), epochs, wanted)
    if "later_epochs" in changed:
        changed["later_epochs"] = max(1, round(changed["later_epochs"] * wanted / epochs))
    return changed


def flags(settings: Mapping[str, Any]) -> list[str]:
    """The same settings as one would type them for `ssil run`.

    >>> flags({"tasks": 5, "lr": (0.1, 0.01), "large_base": True, "options": {"batches": "mixed", "some": [1, 2]}})
    ['--tasks', '5', '--lr', '0.1,0.01', '--large-base', '--option', 'batches=mixed', '--option', 'some=[1, 2]']
    """
    aliases = {name: field.alias for name, field in RunConfig.model_fields.items() if field.alias}
    typed: list[str] = []
    for name, value in settings.items():
        flag = f"--{aliases.get(name, name).replace('_', '-')}"
        if name == "options":
            typed += [word for key, one in value.items() for word in ("--option", f"{key}={_option(one)}")]
        elif isinstance(value, bool):
            typed.append(flag if value else f"--no-{flag[2:]}")
        elif isinstance(value, list | tuple):
            single = name == "lr" and len(value) == 1  # the comma tells it from a rate that decays
            typed += [flag, ",".join(map(str, value)) + "," * single]
        elif value is not None:
            typed += [flag, str(value)]
    return typed


def _option(value: Any) -> str:
    """Plain where that says the same, in quotes where it would be read as something else."""
    return value if isinstance(value, str) and literal(value) == value else json.dumps(value)


def literal(text: str) -> Any:
    """A TOML value; what is none is a plain string.

    >>> literal("2.5"), literal("true"), literal("[1, 2]"), literal("tkd")
    (2.5, True, [1, 2], 'tkd')
    """
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def numbers(text: str) -> list[str]:
    """What stands between commas.

    >>> numbers("40,80"), numbers("0.1,"), numbers("")
    (['40', '80'], ['0.1'], [])
    """
    return text.removesuffix(",").split(",") if text else []
