"""What users are told about a method, in the terminal and on the site: needs, options, settings in each profile."""

import re
from dataclasses import fields
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from ssil.learning.method import Requirements
from ssil.learning.registry import PROFILES, Recipe
from ssil.learning.schedule import Training


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


def needs_of(recipe: Recipe) -> Requirements | None:
    """Return what a method needs; None if that depends on options without defaults."""
    required = any(default is ... for _, default in recipe.options.values())
    return None if required else recipe.build(Training()).requirements()


def needs_text(recipe: Recipe) -> str:
    """Return what a method needs, in words."""
    needs = needs_of(recipe)
    if needs is None:
        return "depends on its options"
    memory = {"none": "no exemplars (no image is kept)", "budget": "exemplars", "all": "all images of all tasks"}[
        needs.memory
    ]
    parts = {
        "no training": not needs.training,
        "a network that grows": needs.branches,
        "values stored with exemplars": needs.stored,
        "a teacher": needs.teacher,
        "held-out images": needs.held_out,
        f"post-processing ({', '.join(needs.post_processing)})": bool(needs.post_processing),
    }
    return ", ".join([memory, *(part for part, needed in parts.items() if needed)])


def settings_by_profile(recipe: Recipe) -> dict[str, list[Any]]:
    """Return each training setting, and each option that a profile changes, with its values in `PROFILES`.

    A method without training has no training settings.
    """
    needs = needs_of(recipe)
    trained = [entry for entry in fields(Training) if needs is None or needs.training]
    training = {entry.name: entry.default for entry in trained if entry.name != "increments"}
    defaults = training | {option: default for option, (_, default) in recipe.options.items()}
    columns = [defaults | recipe.settings(profile) for profile in PROFILES]
    rows = {setting: [column[setting] for column in columns] for setting in defaults}
    return {setting: row for setting, row in rows.items() if setting in training or any(v != row[0] for v in row)}


def type_text(kind: Any) -> str:
    """Return a type as a user would write its values.

    >>> type_text(Literal["tkd", "gkd"]), type_text(int | None), type_text(float)
    ('tkd | gkd', 'int | None', 'float')
    """
    if get_origin(kind) is Literal:
        return " | ".join(map(str, get_args(kind)))
    if get_origin(kind) is Annotated:
        return type_text(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return " | ".join(map(type_text, get_args(kind)))
    return "None" if kind is NoneType else kind.__name__ if isinstance(kind, type) else str(kind)


def default_text(value: Any) -> str:
    """Return an option's default in words; `...` stands for none."""
    return "(required)" if value is ... else str(value)
