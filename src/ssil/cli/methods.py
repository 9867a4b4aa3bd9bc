"""`ssil methods`: the methods and their settings."""

import inspect
from dataclasses import asdict, fields
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from cyclopts import App, Parameter
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from ssil.cli.terminal import Json, console, json_line, table
from ssil.learning.method import Needs
from ssil.learning.registry import PROFILES, Recipe, find_recipe, recipes
from ssil.learning.schedule import Training

app = App(
    name="methods",
    help_epilogue="""Examples:
  ssil methods
  ssil methods ssil
  ssil methods my_file.py:my_method""",
)


@app.default
def methods(
    name: Annotated[str | None, Parameter(help="a method's name, names with commas, or my_file.py:my_method")] = None,
    /,
    *,
    json: Json = False,
) -> None:
    """List the methods, or show all about one."""
    chosen = [find_recipe(part.strip()) for part in name.split(",")] if name else list(recipes().values())
    if json:
        for recipe in chosen:
            json_line(**_numbers(recipe))
    else:
        console().print(Group(*map(_whole, chosen)) if name else _list(chosen))


def _list(chosen: list[Recipe]) -> RenderableType:
    """A block a method: its paper, what it needs, its options with their defaults."""
    made = Table.grid(padding=(0, 2, 1, 0))
    for recipe in chosen:
        options = " ".join(f"{name}={_default(value)}" for name, (_, value) in recipe.options.items())
        lines = [recipe.summary, f"needs {_needs(recipe)}", *[f"options {options}"] * bool(options)]
        made.add_row(f"[bold]{recipe.name}[/]", escape("\n".join(lines)))
    return made


def _needs(recipe: Recipe) -> str:
    """What a method asks for, in words."""
    needs = _read_off(recipe)
    if needs is None:
        return "what its options say"
    memory = {"none": "no exemplars", "budget": "exemplars", "all": "all images of all tasks"}[needs.memory]
    further = ", ".join(needs.post_processing)
    parts = {
        "a teacher": needs.teacher,
        "a held-out part": needs.held_out,
        f"post-processing ({further})": bool(needs.post_processing),
    }
    return ", ".join([memory, *(part for part, needed in parts.items() if needed)])


def _whole(recipe: Recipe) -> RenderableType:
    options = table("option", "type", "default", words=3)
    for option, (kind, default) in recipe.options.items():
        options.add_row(option, escape(_type(kind)), _default(default))
    profiles = table("profile", *PROFILES)
    for setting, values in _by_profile(recipe).items():
        profiles.add_row(setting, *(escape(_shown(value)) for value in values))
    doc = escape(_paragraphs(inspect.getdoc(recipe.build) or ""))
    return Group(
        f"[bold]{recipe.name}[/]\n{doc}\n\nNeeds {escape(_needs(recipe))}.\n",
        *[options] if recipe.options else [],
        profiles,
    )


def _paragraphs(text: str) -> str:
    """The text with a line a paragraph, for the terminal to fold."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _read_off(recipe: Recipe) -> Needs | None:
    """None where options must be given before there is a method to look at."""
    required = any(default is ... for _, default in recipe.options.values())
    return None if required else recipe.build(Training()).needs()


def _default(value: Any) -> str:
    return "(required)" if value is ... else str(value)


def _by_profile(recipe: Recipe) -> dict[str, list[Any]]:
    """Under each profile: the training settings, and those options that a profile changes."""
    training = {entry.name: entry.default for entry in fields(Training) if entry.name != "increments"}
    defaults = training | {option: default for option, (_, default) in recipe.options.items()}
    columns = [defaults | recipe.settings(profile) for profile in PROFILES]
    rows = {setting: [column[setting] for column in columns] for setting in defaults}
    return {setting: row for setting, row in rows.items() if setting in training or any(v != row[0] for v in row)}


def _type(kind: Any) -> str:
    """A type as a user would write its values.

    >>> _type(Literal["tkd", "gkd"]), _type(int | None), _type(float)
    ('tkd | gkd', 'int | None', 'float')
    """
    if get_origin(kind) is Literal:
        return " | ".join(map(str, get_args(kind)))
    if get_origin(kind) is Annotated:
        return _type(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return " | ".join(map(_type, get_args(kind)))
    return "None" if kind is NoneType else kind.__name__ if isinstance(kind, type) else str(kind)


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _numbers(recipe: Recipe) -> dict[str, Any]:
    options = {
        name: {"type": _type(kind), "default": _default(default) if default is ... else default}
        for name, (kind, default) in recipe.options.items()
    }
    settings = _by_profile(recipe)
    profiles = {name: {key: row[index] for key, row in settings.items()} for index, name in enumerate(PROFILES)}
    needs = _read_off(recipe)
    return {
        "name": recipe.name,
        "summary": recipe.summary,
        "needs": asdict(needs) if needs else None,
        "options": options,
        "profiles": profiles,
    }
