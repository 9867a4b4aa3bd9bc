"""Methods by name: a recipe function is found by its name, and its signature is its options, its help, its docs."""

import inspect
import pkgutil
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, reduce
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from pydantic import ConfigDict, ValidationError, create_model

from ssil.core import plugins
from ssil.core.errors import UserError, did_you_mean
from ssil.learning.method import Method
from ssil.learning.schedule import Training, scale_milestones
from ssil.learning.snapshot import MAIN

PROFILES = ("paper", "official", "quick")
"""The text's values; what the authors' code really runs; a short schedule for a CPU."""

_QUICK: dict[str, Any] = {"epochs": 8, "batch": 64}
_OFFICIAL: dict[str, Any] = {"new_head_init": "zero"}
TRAINING_FIELDS = frozenset(entry.name for entry in fields(Training))


@dataclass(frozen=True)
class Recipe:
    """A registered method: how to build it, and what the profiles change in its settings."""

    name: str
    build: Callable[..., Method]
    paper: Mapping[str, Any]
    official: Mapping[str, Any]
    quick: Mapping[str, Any]

    @property
    def summary(self) -> str:
        """The docstring's first line: the method's paper, venue and year."""
        return (inspect.getdoc(self.build) or "").partition("\n")[0]

    @property
    def options(self) -> dict[str, tuple[Any, Any]]:
        """The type and the default of each option; `...` where it has none and must be given."""
        parameters = list(inspect.signature(self.build).parameters.values())[1:]
        return {p.name: (p.annotation, ... if p.default is p.empty else p.default) for p in parameters}

    def settings(self, profile: str) -> dict[str, Any]:
        """What a profile says: training settings and options, as changes to the defaults."""
        extra: dict[str, dict[str, Any]] = {
            "official": {**_OFFICIAL, **self.official},
            "quick": {**_QUICK, **self.quick},
        }
        return scaled(dict(self.paper), extra.get(profile, {}))


RECIPES: dict[str, Recipe] = {}


def register(
    *,
    paper: Mapping[str, Any] | None = None,
    official: Mapping[str, Any] | None = None,
    quick: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., Method]], Callable[..., Method]]:
    """Register a recipe under its function's name.

    `paper` holds what differs from `Training`'s defaults or the function's own; `official` what the authors'
    code changes on top of that; `quick` what a short schedule asks for.
    """

    def add(build: Callable[..., Method]) -> Callable[..., Method]:
        name = build.__name__
        RECIPES[name] = Recipe(name, build, paper or {}, official or {}, quick or {})
        return build

    return add


def setting(
    build: Callable[..., Method],
    name: str,
    summary: str,
    options: Iterable[str],
    official: Mapping[str, Any] | None = None,
    **changed: Any,
) -> None:
    """Register a named setting of a recipe: `changed` from its defaults; of its options only these can be given."""

    def named(training: Training, **given: Any) -> Method:
        return build(training, **changed | given)

    training, *parameters = inspect.signature(build).parameters.values()
    free = [p.replace(default=changed.get(p.name, p.default)) for p in parameters if p.name in {*options}]
    named.__name__, named.__doc__ = name, summary
    named.__signature__ = inspect.Signature([training, *free])  # type: ignore[attr-defined]
    register(official=official)(named)


def scaled(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`base` with `changes`; milestones and later epochs follow a change of the epochs unless they are given."""
    merged = {**base, **changes}
    before = replace(Training(), **{key: value for key, value in base.items() if key in TRAINING_FIELDS})
    wanted = merged.get("epochs", before.epochs)
    if "epochs" in changes and "milestones" not in changes:
        merged["milestones"] = scale_milestones(before.milestones, before.epochs, wanted)
    if "epochs" in changes and "later_epochs" not in changes and before.later_epochs is not None:
        merged["later_epochs"] = max(1, round(before.later_epochs * wanted / before.epochs))
    return merged


RESERVED = frozenset({"arrays", "checkpoint"})
"""Folders of a run's directory, where each rider has one too."""


@dataclass(frozen=True)
class ConfiguredMethod:
    """A method with every setting resolved."""

    name: str
    """As it was asked for: a name, or my_file.py:my_method."""
    method: Method
    training: Training
    options: dict[str, Any]
    defaults: dict[str, Any]
    """Of the options: what a record that was left before an option existed was made with."""
    riders: Mapping[str, "ConfiguredMethod"] = field(default_factory=dict)
    """The methods that share its training; the method has a scorer under each one's name."""

    @property
    def folder(self) -> str:
        """Its own name, without that of a file: where its record is if it is not the run's first."""
        return self.name.rpartition(":")[2]


METHODS = "ssil.methods"
"""The folder of the built-in methods. Importing one of its files registers what the file defines."""


@cache
def _import_all_methods() -> None:
    for module in pkgutil.iter_modules(import_module(METHODS).__path__):
        import_module(f"{METHODS}.{module.name}")


def _import_method(name: str) -> None:
    """Import the file of a built-in method; all files if none has this name, since a file may define several."""
    if name.isidentifier() and find_spec(f"{METHODS}.{name}"):
        import_module(f"{METHODS}.{name}")
    else:
        _import_all_methods()


def recipes() -> dict[str, Recipe]:
    """All methods of the package, by name."""
    _import_all_methods()
    return dict(sorted(RECIPES.items()))


def find_recipe(name: str) -> Recipe:
    """A method of the package, of an installed plug-in, or of a file (`my_file.py:my_method`)."""
    _import_method(name)
    build = plugins.find("method", name, {key: recipe.build for key, recipe in sorted(RECIPES.items())})
    registered = RECIPES.get(build.__name__)
    return registered if registered and registered.build is build else Recipe(name, build, {}, {}, {})


def configure(
    name: str,
    profile: str = "paper",
    training: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    increments: int | None = None,
) -> ConfiguredMethod:
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

    def ready(reference: str, recipe: Recipe) -> ConfiguredMethod:
        theirs = {key: value for key, value in given.items() if key in recipe.options}
        return _configured(reference, recipe, profile, training or {}, theirs, increments)

    first, *riders = map(ready, names, found)
    return reduce(_joined, riders, first)


def _joined(first: ConfiguredMethod, rider: ConfiguredMethod) -> ConfiguredMethod:
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
            hint = did_you_mean(name, known, f"it has: {', '.join(known) or 'none'}")
            raise UserError(f"options: {','.join(recipe.name for recipe in found)} has no option {name!r}; {hint}")


def _configured(
    name: str,
    recipe: Recipe,
    profile: str,
    training: Mapping[str, Any],
    options: Mapping[str, Any],
    increments: int | None,
) -> ConfiguredMethod:
    base = recipe.settings(profile)
    ours = {key: value for key, value in base.items() if key in TRAINING_FIELDS}
    resolved = Training(**scaled(ours, dict(training)), increments=increments)
    chosen = _validated(recipe, {**{k: v for k, v in base.items() if k not in TRAINING_FIELDS}, **options})
    defaults = {option: default for option, (_, default) in recipe.options.items()}
    return ConfiguredMethod(name, recipe.build(resolved, **chosen), resolved, chosen, defaults)


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
