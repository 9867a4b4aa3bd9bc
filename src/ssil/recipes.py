"""Methods ready for use: found by name, their settings resolved and checked."""

import difflib
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from pydantic import ConfigDict, ValidationError, create_model

import ssil.methods  # noqa: F401  # importing the package registers its methods
from ssil import plugins
from ssil.errors import UserError
from ssil.method import Method
from ssil.registry import RECIPES, TRAINING_FIELDS, Recipe, scaled
from ssil.schedule import Training
from ssil.snapshot import MAIN

RESERVED = frozenset({"arrays", "checkpoint"})
"""Folders of a run's directory, where each rider has one too."""


@dataclass(frozen=True)
class Configured:
    """A method with every setting resolved."""

    name: str
    """As it was asked for: a name, or my_file.py:my_method."""
    method: Method
    training: Training
    options: dict[str, Any]
    defaults: dict[str, Any]
    """Of the options: what a record that was left before an option existed was made with."""
    riders: Mapping[str, "Configured"] = field(default_factory=dict)
    """The methods that share its training; the method has a scorer under each one's name."""

    @property
    def folder(self) -> str:
        """Its own name, without that of a file: where its record is if it is not the run's first."""
        return self.name.rpartition(":")[2]


def recipes() -> dict[str, Recipe]:
    """All methods of the package, by name."""
    return dict(sorted(RECIPES.items()))


def find_recipe(name: str) -> Recipe:
    """A method of the package, of an installed plug-in, or of a file (`my_file.py:my_method`)."""
    build = plugins.find("method", name, {key: recipe.build for key, recipe in recipes().items()})
    registered = RECIPES.get(build.__name__)
    return registered if registered and registered.build is build else Recipe(name, build, {}, {}, {})


def configure(
    name: str,
    profile: str = "paper",
    training: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    increments: int | None = None,
) -> Configured:
    """A method under a profile, with the user's own settings on top; `ft,il2m` lets the second ride on the first.

    >>> sorted(configure("ft,il2m,scail").method.scorers)
    ['il2m', 'main', 'scail']
    """
    names = [part.strip() for part in name.split(",")]
    if twice := [part for part in names if names.count(part) > 1]:
        raise UserError(f"method: {twice[0]!r} is named twice; name each method once")
    found = [find_recipe(part) for part in names]
    given = dict(options or {})
    _refuse_unknown(given, found)

    def ready(reference: str, recipe: Recipe) -> Configured:
        theirs = {key: value for key, value in given.items() if key in recipe.options}
        return _configured(reference, recipe, profile, training or {}, theirs, increments)

    first, *riders = map(ready, names, found)
    return reduce(_joined, riders, first)


def _joined(first: Configured, rider: Configured) -> Configured:
    """The first method, with the rider's scorer under the rider's name."""
    name = rider.folder
    if name in first.method.scorers or name in RESERVED:
        raise UserError(f"method: another part of the run is called {name!r}; give the method another name")
    if first.method.chain is None or first.method.chain != rider.method.chain:
        raise UserError(
            f"method: {name} does not train as {first.name} does, so they can't share a run; run each alone"
        )
    scorers = {**first.method.scorers, name: rider.method.scorers[MAIN]}
    return replace(first, method=replace(first.method, scorers=scorers), riders={**first.riders, name: rider})


def _refuse_unknown(options: Mapping[str, Any], found: Sequence[Recipe]) -> None:
    known = list(dict.fromkeys(option for recipe in found for option in recipe.options))
    for name in options:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has: {', '.join(known) or 'none'}"
            raise UserError(f"options: {','.join(recipe.name for recipe in found)} has no option {name!r}; {hint}")


def _configured(
    name: str,
    recipe: Recipe,
    profile: str,
    training: Mapping[str, Any],
    options: Mapping[str, Any],
    increments: int | None,
) -> Configured:
    base = recipe.settings(profile)
    ours = {key: value for key, value in base.items() if key in TRAINING_FIELDS}
    resolved = Training(**scaled(ours, dict(training)), increments=increments)
    chosen = _validated(recipe, {**{k: v for k, v in base.items() if k not in TRAINING_FIELDS}, **options})
    defaults = {option: default for option, (_, default) in recipe.options.items()}
    return Configured(name, recipe.build(resolved, **chosen), resolved, chosen, defaults)


def _validated(recipe: Recipe, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with their types checked and their defaults filled in."""
    model: Any = create_model(recipe.name, __config__=ConfigDict(extra="forbid"), **typing.cast(Any, recipe.options))
    try:
        return dict(model(**options))
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "missing":
            wanted = first["loc"][0]
            raise UserError(f"options: {recipe.name} needs {wanted!r}; give --option {wanted}=VALUE") from None
        raise UserError(f"options.{first['loc'][0]}: {first['input']!r} does not fit: {first['msg']}") from None
