"""Methods ready for use: found by name, their settings resolved and checked."""

import difflib
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ConfigDict, ValidationError, create_model

import ssil.methods  # noqa: F401  # importing the package registers its methods
from ssil import plugins
from ssil.errors import UserError
from ssil.method import Method
from ssil.registry import RECIPES, TRAINING_FIELDS, Recipe, scaled
from ssil.schedule import Training


@dataclass(frozen=True)
class Configured:
    """A method with every setting resolved."""

    method: Method
    training: Training
    options: dict[str, Any]


def recipes() -> dict[str, Recipe]:
    """All methods of the package, by name."""
    return dict(sorted(RECIPES.items()))


def find_recipe(name: str) -> Recipe:
    """A method of the package, of an installed plug-in, or of a file (`my_file.py:my_method`)."""
    build = plugins.find("method", name, {key: recipe.build for key, recipe in recipes().items()})
    registered = RECIPES.get(build.__name__)
    return registered if registered and registered.build is build else Recipe(name, build, {}, {})


def configure(
    name: str,
    profile: str = "paper",
    training: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    increments: int | None = None,
) -> Configured:
    """A method under a profile, with the user's own settings on top."""
    recipe = find_recipe(name)
    base = recipe.settings(profile)
    ours = {key: value for key, value in base.items() if key in TRAINING_FIELDS}
    resolved = Training(**scaled(ours, dict(training or {})), increments=increments)
    chosen = _validated(recipe, {**{k: v for k, v in base.items() if k not in TRAINING_FIELDS}, **(options or {})})
    return Configured(recipe.build(resolved, **chosen), resolved, chosen)


def _validated(recipe: Recipe, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with their types checked and their defaults filled in."""
    known = recipe.options
    for name in options:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has: {', '.join(known) or 'none'}"
            raise UserError(f"options: {recipe.name} has no option {name!r}; {hint}")
    model: Any = create_model(recipe.name, __config__=ConfigDict(extra="forbid"), **typing.cast(Any, known))
    try:
        return dict(model(**options))
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"options.{first['loc'][0]}: {first['input']!r} does not fit: {first['msg']}") from None
