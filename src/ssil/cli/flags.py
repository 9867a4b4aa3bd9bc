"""The settings of `ssil run`: flags, over the keys of a file, over one of the paper's scenarios."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin

from cyclopts import Group, Parameter
from pydantic.fields import FieldInfo

from ssil.benchmark.config import RunConfig, by_name, literal, make_config, numbers, over, read_toml
from ssil.core.errors import UserError
from ssil.reproduction.paper_scenarios import find

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
    given = over(by_name(read_toml(file)) if file else {}, _parsed(flags))
    named = given.pop("scenario", None)
    chosen = scenario or named
    return make_config(over(_of_scenario(str(chosen)) if chosen else {}, given))


def _of_scenario(key: str) -> dict[str, Any]:
    scenario = find(key)
    names = ("dataset", "classes", "tasks", "large_base", "memory", "memory_per_class")
    chosen = {name: value for name in names if (value := getattr(scenario, name)) is not None}
    return {"backbone": "resnet18", **chosen}  # the paper's network for all 60


def _parsed(flags: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in flags.items() if value is not None}
    return {name: _PARSERS[name](value) if name in _PARSERS else value for name, value in given.items()}


def options(pairs: list[str]) -> dict[str, Any]:
    """What `--option name=value`, repeated, says."""
    for pair in pairs:
        if "=" not in pair:
            raise UserError(f"option: {pair!r} has no value; write --option name=value")
    return {name: literal(value) for name, _, value in (pair.partition("=") for pair in pairs)}


def _number_or_numbers(text: str) -> str | list[str]:
    return numbers(text) if "," in text else text


_PARSERS: dict[str, Callable[[Any], Any]] = {
    "options": options,
    "task_sizes": numbers,
    "milestones": numbers,
    "lr": _number_or_numbers,
    "class_order": literal,
}
