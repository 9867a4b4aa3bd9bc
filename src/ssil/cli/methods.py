"""`ssil methods`: the list of methods, or the options and settings of one."""

import inspect
import re
from dataclasses import asdict, fields
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from cyclopts import App, Parameter
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from ssil.cli.terminal import Json, console, json_line, table
from ssil.learning.method import Requirements
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
    name: Annotated[
        str | None, Parameter(help="a method's name, several names with commas, or my_file.py:my_method")
    ] = None,
    /,
    *,
    json: Json = False,
) -> None:
    """List the methods, or show the options and settings of one."""
    chosen = [find_recipe(part.strip()) for part in name.split(",")] if name else list(recipes().values())
    if json:
        for recipe in chosen:
            json_line(**_json(recipe))
    else:
        console().print(Group(*map(_description, chosen)) if name else _list(chosen))


def _list(chosen: list[Recipe]) -> RenderableType:
    """Return one block per method: its paper, what it needs, its options with their defaults."""
    blocks = Table.grid(padding=(0, 2, 0, 0))
    for recipe in chosen:
        options = " ".join(f"{name}={_default(value)}" for name, (_, value) in recipe.options.items())
        lines = [recipe.summary, f"needs: {_needs_text(recipe)}", *[f"options: {options}"] * bool(options)]
        blocks.add_row(f"[bold]{recipe.name}[/]", escape("\n".join(lines)) + "\n")
    return blocks


def _description(recipe: Recipe) -> RenderableType:
    """Return all about one method: its docstring, its options, its settings in each profile."""
    options = table("option", "type", "default", words=3)
    for option, (kind, default) in recipe.options.items():
        options.add_row(option, escape(_type(kind)), _default(default))
    profiles = table("setting", *(f"{profile} profile" for profile in PROFILES))
    for setting, values in _settings_by_profile(recipe).items():
        profiles.add_row(setting, *(escape(_value(value)) for value in values))
    text, meanings = described(inspect.getdoc(recipe.build) or "")
    explained = Table.grid(padding=(0, 2, 0, 1))
    for option, meaning in meanings.items():
        explained.add_row(option, escape(meaning))
    return Group(
        f"[bold]{recipe.name}[/]\n{escape(text)}\n\nNeeds: {escape(_needs_text(recipe))}.\n",
        Group(options, "") if recipe.options else Group(),
        Group(explained, "") if meanings else Group(),
        Group(profiles, "") if profiles.row_count else Group(),
    )


def described(doc: str) -> tuple[str, dict[str, str]]:
    r"""Split a docstring into its paragraphs, one line each for the terminal to fold, and its Args by name.

    >>> described("Deep: a method.\n\nArgs:\n    depth: How deep\n        it is.\n    width: How wide.")
    ('Deep: a method.', {'depth': 'How deep it is.', 'width': 'How wide.'})
    """
    before, _, arguments = doc.partition("\n\nArgs:\n")
    arguments, _, after = arguments.partition("\n\n")
    paragraphs = f"{before}\n\n{after}".rstrip().split("\n\n")
    entries = (" ".join(entry.split()).partition(": ") for entry in re.split(r"(?m)^ {4}(?=\w)", arguments)[1:])
    return "\n\n".join(" ".join(part.split()) for part in paragraphs), {name: text for name, _, text in entries}


def _needs(recipe: Recipe) -> Requirements | None:
    """Return what a method needs; None if that depends on options without defaults."""
    required = any(default is ... for _, default in recipe.options.values())
    return None if required else recipe.build(Training()).requirements()


def _needs_text(recipe: Recipe) -> str:
    needs = _needs(recipe)
    if needs is None:
        return "depends on its options"
    memory = {"none": "no exemplars (no image is kept)", "budget": "exemplars", "all": "all images of all tasks"}[
        needs.memory
    ]
    parts = {
        "no training": not needs.training,
        "values stored with exemplars": needs.stored,
        "a teacher": needs.teacher,
        "held-out images": needs.held_out,
        f"post-processing ({', '.join(needs.post_processing)})": bool(needs.post_processing),
    }
    return ", ".join([memory, *(part for part, needed in parts.items() if needed)])


def _settings_by_profile(recipe: Recipe) -> dict[str, list[Any]]:
    """Return each training setting, and each option that a profile changes, with its values in `PROFILES`.

    A method without training has no training settings.
    """
    needs = _needs(recipe)
    trained = [entry for entry in fields(Training) if needs is None or needs.training]
    training = {entry.name: entry.default for entry in trained if entry.name != "increments"}
    defaults = training | {option: default for option, (_, default) in recipe.options.items()}
    columns = [defaults | recipe.settings(profile) for profile in PROFILES]
    rows = {setting: [column[setting] for column in columns] for setting in defaults}
    return {setting: row for setting, row in rows.items() if setting in training or any(v != row[0] for v in row)}


def _type(kind: Any) -> str:
    """Return a type as a user would write its values.

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


def _default(value: Any) -> str:
    return "(required)" if value is ... else str(value)


def _value(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _json(recipe: Recipe) -> dict[str, Any]:
    options = {
        name: {"type": _type(kind), "default": _default(default) if default is ... else default}
        for name, (kind, default) in recipe.options.items()
    }
    settings, needs = _settings_by_profile(recipe), _needs(recipe)
    return {
        "name": recipe.name,
        "summary": recipe.summary,
        "needs": asdict(needs) if needs else None,
        "options": options,
        "profiles": {name: {key: row[index] for key, row in settings.items()} for index, name in enumerate(PROFILES)},
    }
