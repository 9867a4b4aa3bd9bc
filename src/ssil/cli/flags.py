"""Flags generated from a settings model; for `ssil run` also its TOML file and the paper's scenarios."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

from cyclopts import Group, Parameter

from ssil.benchmark.config import RunConfig, by_field_name, literal, make_config, override, read_toml
from ssil.core.errors import UserError
from ssil.core.settings import Settings
from ssil.reproduction.field_protocols import find_protocol, protocol_config
from ssil.reproduction.paper_scenarios import find

Command = TypeVar("Command", bound=Callable[..., None])

GROUPS = {
    name: Group(name, sort_key=number)
    for number, name in enumerate(("Data", "Stream", "Memory", "Method", "Training", "How"))
}
"""The groups of the help of `ssil run`, in their order."""

_HIDDEN = "_by_field_name"
"""Ends the parameter of a hidden flag that has the name of a field, where the field has an alias."""


@dataclass(frozen=True)
class FlagStyle:
    """How the help shows values and defaults."""

    metavars: Mapping[type, str] = field(
        default_factory=lambda: {tuple: "N,N,...", str: "TEXT", Path: "PATH", float: "NUMBER", int: "N"}
    )
    default_in_text: bool = False
    """Whether the help's sentence states the default, instead of brackets after it."""
    negatives: bool = True
    """Whether a switch that is off by default has a --no- form; useful where a file may have switched it on."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """The defaults that the help states in place of the model's, by field."""


def with_flags(
    model: type[Settings], before: Mapping[str, str] | None = None, style: FlagStyle | None = None
) -> Callable[[Command], Command]:
    """Give a command one flag per field of `model`; it receives them as `**flags`, None where not given.

    Args:
        model: The settings.
        before: By name, options of the command or of the model that the help lists before another one. By default the
            command's own come last.
        style: How the help shows values and defaults.
    """

    def add(command: Command) -> Command:
        own = [p for p in inspect.signature(command).parameters.values() if p.kind != inspect.Parameter.VAR_KEYWORD]
        arguments = [p for p in own if p.kind == inspect.Parameter.POSITIONAL_ONLY]
        options = [*flag_parameters(model, style or FlagStyle()), *own[len(arguments) :]]
        signature = inspect.Signature([*arguments, *_reordered(options, before or {})])
        command.__signature__ = signature  # type: ignore[attr-defined]
        return command

    return add


def _reordered(options: Iterable[inspect.Parameter], before: Mapping[str, str]) -> list[inspect.Parameter]:
    listed = {option.name: option for option in options}
    names = list(listed)
    for name, other in before.items():
        names.remove(name)
        names.insert(names.index(other), name)
    return [listed[name] for name in names]


def flag_parameters(model: type[Settings], style: FlagStyle) -> list[inspect.Parameter]:
    """Return one keyword parameter per field that is not hidden, as cyclopts reads it.

    A field with an alias has a second parameter, which the help does not show.
    """
    parameters = []
    for name, info in model.model_fields.items():
        if model.properties(name).get("hidden"):
            continue
        parameters.append(_keyword(name, _flag_type(model, name), _parameter(model, name, style)))
        if info.alias:
            hidden = Parameter(name=f"--{_dashed(name)}", show=False)
            parameters.append(_keyword(name + _HIDDEN, str, hidden))
    return parameters


def _keyword(name: str, kind: Any, parameter: Parameter) -> inspect.Parameter:
    annotation = cast(Any, Annotated)[kind | None, parameter]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _flag_type(model: type[Settings], name: str) -> Any:
    """Return the type that the parser reads: that of a switch or a choice; all else is text until it is validated."""
    kinds = _kinds(model, name)
    if bool in kinds or Literal in kinds:
        return model.model_fields[name].annotation
    return list[str] if dict in kinds else str


def _kinds(model: type[Settings], name: str) -> set[Any]:
    """Return the types of which a field's value may be, without their parameters and without None."""
    annotation = model.model_fields[name].annotation
    members = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    plain = [get_args(kind)[0] if get_origin(kind) is Annotated else kind for kind in members]
    return {get_origin(kind) or kind for kind in plain} - {NoneType}


def _parameter(model: type[Settings], name: str, style: FlagStyle) -> Parameter:
    info, kinds = model.model_fields[name], _kinds(model, name)
    own = None if info.default is False or dict in kinds else info.default
    default = style.defaults.get(name, own)
    help_text, group = info.description or "", model.properties(name).get("group")
    in_group: dict[str, Any] = {"group": GROUPS[group]} if group else {}
    if style.default_in_text and default is not None:
        help_text += f" (default: {'yes' if default is True else default})"
    return Parameter(
        name="--option" if dict in kinds else f"--{_dashed(info.alias or name)}",
        help=help_text,
        show_default=False if style.default_in_text or default is None or bool in kinds else str(default),
        metavar="NAME=VALUE"
        if dict in kinds
        else next((style.metavars[k] for k in style.metavars if k in kinds), None),
        negative="" if info.default is False and not style.negatives else None,
        negative_iterable="",
        **in_group,
    )


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def parsed(model: type[Settings], flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags that were given as values that `model` validates, by field name."""
    given = {name.removesuffix(_HIDDEN): value for name, value in flags.items() if value is not None}
    return {name: _value(_kinds(model, name), value) for name, value in given.items()}


def _value(kinds: set[Any], value: Any) -> Any:
    if dict in kinds:
        return options(value)
    if tuple in kinds and ("," in value or kinds == {tuple}):
        return numbers(value)
    return literal(value) if kinds == {int, str} else value


def options(pairs: list[str]) -> dict[str, Any]:
    """Return the options that `--option name=value`, repeated, gives."""
    for pair in pairs:
        if "=" not in pair:
            raise UserError(f"option: {pair!r} has no value; write --option name=value")
    return {name: literal(value) for name, _, value in (pair.partition("=") for pair in pairs)}


def numbers(text: str) -> list[str]:
    """Return the parts of `text` between commas; a comma at its end is left out.

    >>> numbers("40,80"), numbers("0.1,"), numbers("")
    (['40', '80'], ['0.1'], [])
    """
    return text.removesuffix(",").split(",") if text else []


def chosen_protocol(file: Path | None, protocol: str | None) -> str | None:
    """Return the protocol that a command line names, or else its file of settings."""
    stated = read_toml(file).get("protocol") if file and not protocol else None
    return protocol if stated is None else str(stated)


def resolve(
    file: Path | None, scenario: str | None, flags: Mapping[str, Any], protocol: str | None = None
) -> RunConfig:
    """Return the configuration that a command line of `ssil run` asks for.

    Flags override the keys of the file, and both override the scenario or the protocol.
    """
    stated = read_toml(file) if file else {}
    given = override(by_field_name(stated), parsed(RunConfig, flags))
    named, _ = given.pop("scenario", None), given.pop("protocol", None)
    chosen = scenario or named
    if chosen and protocol:
        raise UserError("protocol: a scenario is given too; give --protocol or --scenario, not both")
    try:
        if protocol:
            return protocol_config(find_protocol(protocol), given)
        return make_config(override(_scenario_settings(str(chosen)) if chosen else {}, given))
    except UserError as error:
        field = str(error).partition(":")[0]
        raise UserError(f"config: {file}: {error}" if field in stated and field not in flags else str(error)) from None


def _scenario_settings(key: str) -> dict[str, Any]:
    scenario = find(key)
    names = ("dataset", "classes", "tasks", "large_base", "memory", "memory_per_class")
    chosen = {name: value for name in names if (value := getattr(scenario, name)) is not None}
    return {"backbone": "resnet18", **chosen}  # the paper's network for all 60
