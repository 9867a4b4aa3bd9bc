"""The settings of `ssil run`: flags, over the keys of a file, over one of the paper's scenarios."""

import inspect
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin

from cyclopts import Group, Parameter
from pydantic.fields import FieldInfo

from ssil.config import RunConfig, make_config, read_toml
from ssil.errors import UserError
from ssil.paper.scenarios import find
from ssil.schedule import scale_milestones

Command = TypeVar("Command", bound=Callable[..., None])

GROUPS = {
    name: Group(name, sort_key=number)
    for number, name in enumerate(("Data", "Stream", "Memory", "Method", "Training", "How"))
}

_FIRST = {
    "dataset": "Data",
    "tasks": "Stream",
    "memory": "Memory",
    "method": "Method",
    "epochs": "Training",
    "backbone": "Method",
    "seed": "Training",
    "out": "How",
}
"""The field of `RunConfig` from which on the help's group is this one."""

_DISPLACES = {
    "memory": {"memory_per_class"},
    "memory_per_class": {"memory"},
    "tasks": {"task_sizes"},
    "large_base": {"task_sizes"},
    "task_sizes": {"tasks", "large_base"},
}
"""What a setting takes the place of, where it is given on top of others."""


def with_flags(command: Command) -> Command:
    """Give a command a flag for every field of `RunConfig`; it receives them as `**flags`, None where not given."""
    own = [p for p in inspect.signature(command).parameters.values() if p.kind != inspect.Parameter.VAR_KEYWORD]
    command.__signature__ = inspect.Signature([*own, *_flags()])  # type: ignore[attr-defined]
    return command


def _flags() -> list[inspect.Parameter]:
    flags, group = [], ""
    for name, field in RunConfig.model_fields.items():
        group = _FIRST.get(name, group)
        kind = cast(Any, Annotated)[_flag_type(field) | None, _parameter(name, field, GROUPS[group])]
        flags.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind))
    return flags


def _flag_type(field: FieldInfo) -> Any:
    """Switches and choices are the parser's business; every other value is text until `RunConfig` reads it."""
    if _switch(field) or _choices(field):
        return field.annotation
    return list[str] if get_origin(field.annotation) is dict else str


def _switch(field: FieldInfo) -> bool:
    return bool in (field.annotation, *get_args(field.annotation))


def _choices(field: FieldInfo) -> bool:
    return any(get_origin(kind) is Literal for kind in (field.annotation, *get_args(field.annotation)))


def _parameter(name: str, field: FieldInfo, group: Group) -> Parameter:
    repeated = get_origin(field.annotation) is dict
    flag = "option" if repeated else field.alias or name
    return Parameter(
        name=f"--{flag.replace('_', '-')}",
        group=group,
        help=field.description,
        show_default=False if field.default is None or _switch(field) or repeated else str(field.default),
        metavar=None if _switch(field) or _choices(field) else _metavar(field),
        negative_iterable="",
    )


def _metavar(field: FieldInfo) -> str:
    kinds = {"dict": "NAME=VALUE", "tuple": "N,N,...", "str": "TEXT", "Path": "PATH", "float": "NUMBER", "int": "N"}
    return next(shown for kind, shown in kinds.items() if kind in str(field.annotation))


def resolve(file: Path | None, scenario: str | None, flags: Mapping[str, Any]) -> RunConfig:
    """The configuration that a command line asks for."""
    given = _over(_by_name(read_toml(file)) if file else {}, _parsed(flags))
    named = given.pop("scenario", None)
    chosen = scenario or named
    return make_config(_over(_of_scenario(str(chosen)) if chosen else {}, given))


def _by_name(settings: Mapping[str, Any]) -> dict[str, Any]:
    """With fields called by their names, not by their aliases."""
    names = {field.alias: name for name, field in RunConfig.model_fields.items() if field.alias}
    return {names.get(key, key): value for key, value in settings.items()}


def _over(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """`top` over `base`: a setting also takes the place of those that would contradict it; options are merged.

    Where the epochs change, milestones and later epochs of the base follow.

    >>> _over({"memory": 500, "tasks": 10}, {"memory_per_class": 20})
    {'tasks': 10, 'memory_per_class': 20}
    >>> _over({"epochs": 100, "milestones": [40, 80]}, {"epochs": 10})
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


def _of_scenario(key: str) -> dict[str, Any]:
    scenario = find(key)
    names = ("dataset", "classes", "tasks", "large_base", "memory", "memory_per_class")
    chosen = {name: value for name in names if (value := getattr(scenario, name)) is not None}
    return {"backbone": "resnet18", **chosen}  # the paper's network for all 60


def _parsed(flags: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _PARSERS.get(name, _as_it_is)(value) for name, value in flags.items() if value is not None}


def _as_it_is(value: Any) -> Any:
    return value


def literal(text: str) -> Any:
    """A TOML value; what is none is a plain string.

    >>> literal("2.5"), literal("true"), literal("[1, 2]"), literal("tkd")
    (2.5, True, [1, 2], 'tkd')
    """
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _options(pairs: list[str]) -> dict[str, Any]:
    for pair in pairs:
        if "=" not in pair:
            raise UserError(f"option: {pair!r} has no value; write --option name=value")
    return {name: literal(value) for name, _, value in (pair.partition("=") for pair in pairs)}


def _numbers(text: str) -> list[str]:
    return text.split(",")


def _number_or_numbers(text: str) -> str | list[str]:
    return text.split(",") if "," in text else text


_PARSERS: dict[str, Callable[[Any], Any]] = {
    "options": _options,
    "task_sizes": _numbers,
    "milestones": _numbers,
    "lr": _number_or_numbers,
    "class_order": literal,
}
