"""Settings over settings: flags over a file, a method's over a scenario's."""

from collections.abc import Mapping
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

    >>> flags({"tasks": 5, "lr": (0.1, 0.01), "large_base": True, "options": {"batches": "mixed"}})
    ['--tasks', '5', '--lr', '0.1,0.01', '--large-base', '--option', 'batches=mixed']
    """
    aliases = {name: field.alias for name, field in RunConfig.model_fields.items() if field.alias}
    typed: list[str] = []
    for name, value in settings.items():
        flag = f"--{aliases.get(name, name).replace('_', '-')}"
        if name == "options":
            typed += [word for key, one in value.items() for word in ("--option", f"{key}={_typed(one)}")]
        elif isinstance(value, bool):
            typed.append(flag if value else f"--no-{flag[2:]}")
        elif value is not None:
            typed += [flag, _typed(value)]
    return typed


def _typed(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
