"""`ssil methods`: the list of methods, or the options and settings of one."""

import inspect
from dataclasses import asdict
from typing import Annotated, Any

from cyclopts import App, Parameter
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from ssil.cli.terminal import Json, console, json_line, table
from ssil.learning.method_facts import default_text, described, needs_of, needs_text, settings_by_profile, type_text
from ssil.learning.registry import PROFILES, Recipe, find_recipe, recipes

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
        options = " ".join(f"{name}={default_text(value)}" for name, (_, value) in recipe.options.items())
        lines = [recipe.summary, f"needs: {needs_text(recipe)}", *[f"options: {options}"] * bool(options)]
        blocks.add_row(f"[bold]{recipe.name}[/]", escape("\n".join(lines)) + "\n")
    return blocks


def _description(recipe: Recipe) -> RenderableType:
    """Return all about one method: its docstring, its options, its settings in each profile."""
    options = table("option", "type", "default", words=3)
    for option, (kind, default) in recipe.options.items():
        options.add_row(option, escape(type_text(kind)), default_text(default))
    profiles = table("setting", *(f"{profile} profile" for profile in PROFILES))
    for setting, values in settings_by_profile(recipe).items():
        profiles.add_row(setting, *(escape(_value(value)) for value in values))
    text, meanings = described(inspect.getdoc(recipe.build) or "")
    explained = Table.grid(padding=(0, 2, 0, 1))
    for option, meaning in meanings.items():
        explained.add_row(option, escape(meaning))
    return Group(
        f"[bold]{recipe.name}[/]\n{escape(text)}\n\nNeeds: {escape(needs_text(recipe))}.\n",
        Group(options, "") if recipe.options else Group(),
        Group(explained, "") if meanings else Group(),
        Group(profiles, "") if profiles.row_count else Group(),
    )


def _value(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _json(recipe: Recipe) -> dict[str, Any]:
    options = {
        name: {"type": type_text(kind), "default": default_text(default) if default is ... else default}
        for name, (kind, default) in recipe.options.items()
    }
    settings, needs = settings_by_profile(recipe), needs_of(recipe)
    return {
        "name": recipe.name,
        "summary": recipe.summary,
        "needs": asdict(needs) if needs else None,
        "options": options,
        "profiles": {name: {key: row[index] for key, row in settings.items()} for index, name in enumerate(PROFILES)},
    }
