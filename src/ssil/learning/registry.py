"""Methods by name. A recipe is a function that builds a `Method`; its signature defines the method's options."""

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
from ssil.learning.schedule import Training, override_settings, scale_epochs
from ssil.learning.snapshot import MAIN

PROFILES = ("paper", "official", "quick")
"""The settings in the paper's text; those of its authors' code; a short schedule for a CPU."""

METHODS = "ssil.methods"
"""The package of the built-in methods. Importing one of its modules registers the methods defined there."""

RESERVED = frozenset({"arrays", "checkpoint"})
"""Sub-directories of a run directory; methods that share a training have one sub-directory each beside these."""

_QUICK: dict[str, Any] = {"epochs": 8, "batch": 64}
_OFFICIAL: dict[str, Any] = {"new_head_init": "zero"}
TRAINING_FIELDS = frozenset(entry.name for entry in fields(Training))


@dataclass(frozen=True)
class Recipe:
    """A registered method: the function that builds it, and the settings of each profile."""

    name: str
    build: Callable[..., Method]
    paper: Mapping[str, Any] = field(default_factory=dict)
    official: Mapping[str, Any] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """The docstring's first line: the method's paper, venue and year."""
        return (inspect.getdoc(self.build) or "").partition("\n")[0]

    @property
    def options(self) -> dict[str, tuple[Any, Any]]:
        """The type and the default of each option; the default is `...` if the option must be given."""
        parameters = list(inspect.signature(self.build).parameters.values())[1:]
        return {p.name: (p.annotation, ... if p.default is p.empty else p.default) for p in parameters}

    def settings(self, profile: str) -> dict[str, Any]:
        """Return the training settings and options that differ from the defaults under a profile."""
        extra: dict[str, dict[str, Any]] = {
            "official": {**_OFFICIAL, **self.official},
            "quick": {**_QUICK, **self.quick},
        }
        return override_settings(self.paper, extra.get(profile, {}))


RECIPES: dict[str, Recipe] = {}


def register(
    *,
    paper: Mapping[str, Any] | None = None,
    official: Mapping[str, Any] | None = None,
    quick: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., Method]], Callable[..., Method]]:
    """Return a decorator that registers a recipe under its function's name; that of a built-in method is refused.

    Args:
        paper: Training settings and options that differ from the defaults of `Training` and of the function.
        official: Changes to `paper` that the authors' code makes.
        quick: Changes to `paper` for a short schedule.
    """

    def add(build: Callable[..., Method]) -> Callable[..., Method]:
        name = build.__name__
        _refuse_builtin_name(name, build)
        RECIPES[name] = Recipe(name, build, paper or {}, official or {}, quick or {})
        return build

    return add


def _refuse_builtin_name(name: str, build: Callable[..., Method]) -> None:
    """Raise UserError if a function from outside the package has the name of a built-in method."""
    if _is_builtin(build):
        return
    _import_all_methods()
    if name in RECIPES and _is_builtin(RECIPES[name].build):
        raise UserError(f"method: {name!r} is a built-in method; give your function another name")


def _is_builtin(build: Callable[..., Method]) -> bool:
    return build.__module__.startswith(f"{METHODS}.")


def register_variant(
    build: Callable[..., Method],
    name: str,
    summary: str,
    options: Iterable[str],
    official: Mapping[str, Any] | None = None,
    **changed: Any,
) -> None:
    """Register a recipe with other defaults under a name of its own.

    Args:
        build: The recipe.
        name: The name of the variant.
        summary: The first line of its documentation.
        options: The recipe's options that remain options of the variant.
        official: Settings of the authors' code, as for `register`.
        **changed: The defaults of options that differ from the recipe's.
    """

    def variant(training: Training, **given: Any) -> Method:
        return build(training, **changed | given)

    training, *parameters = inspect.signature(build).parameters.values()
    free = [p.replace(default=changed.get(p.name, p.default)) for p in parameters if p.name in {*options}]
    variant.__name__, variant.__doc__, variant.__module__ = name, summary, build.__module__
    variant.__signature__ = inspect.Signature([training, *free])  # type: ignore[attr-defined]
    register(official=official)(variant)


@cache
def _import_all_methods() -> None:
    for module in pkgutil.iter_modules(import_module(METHODS).__path__):
        import_module(f"{METHODS}.{module.name}")


def _import_method(name: str) -> None:
    """Import the module of a built-in method; all modules if none has this name, since a module may define several."""
    if name.isidentifier() and find_spec(f"{METHODS}.{name}"):
        import_module(f"{METHODS}.{name}")
    else:
        _import_all_methods()


def recipes() -> dict[str, Recipe]:
    """Return all built-in methods by name, without those that files from outside the package have registered."""
    _import_all_methods()
    return {name: recipe for name, recipe in sorted(RECIPES.items()) if _is_builtin(recipe.build)}


def find_recipe(name: str) -> Recipe:
    """Return a built-in method, one of an installed package, or one of a file (`my_file.py:my_method`)."""
    _import_method(name)
    build = plugins.find("method", name, {key: recipe.build for key, recipe in sorted(RECIPES.items())})
    registered = RECIPES.get(build.__name__)
    return registered if registered and registered.build is build else Recipe(name, build)


@dataclass(frozen=True)
class ConfiguredMethod:
    """A method with all its settings."""

    name: str
    """The name that was asked for, or my_file.py:my_method."""
    method: Method
    training: Training
    options: dict[str, Any]
    defaults: dict[str, Any]
    """The defaults of the options, which hold for a record written before an option existed."""
    sharing: Mapping[str, "ConfiguredMethod"] = field(default_factory=dict)
    """The methods that share this one's training, by name. `method` has a scorer under each of these names."""

    @property
    def folder(self) -> str:
        """The method's name without a file's: its sub-directory if it shares another method's training."""
        return self.name.rpartition(":")[2]


def configure(
    name: str,
    profile: str = "paper",
    training: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    increments: int | None = None,
) -> ConfiguredMethod:
    """Return a method with the settings of a profile and the user's own.

    Args:
        name: The method; or several, separated by commas, of which the others share the first one's training.
        profile: One of `PROFILES`.
        training: Fields of `Training` that override the profile, and perhaps `epoch_scale`, a factor of its epochs.
        options: Options of the methods that override the profile.
        increments: T, the number of increments of the stream, if it is known.

    Raises:
        UserError: A name, an option or its value is wrong, or the methods can't share a training.

    >>> sorted(configure("ft,il2m,scail").method.scorers)
    ['il2m', 'main', 'scail']
    """
    names = [part.strip() for part in name.split(",")]
    if twice := [part for part in names if names.count(part) > 1]:
        raise UserError(f"method: {twice[0]!r} is named twice; name each method once")
    found = [find_recipe(part) for part in names]
    given = dict(options or {})
    _refuse_unknown(given, found)

    def configured(reference: str, recipe: Recipe) -> ConfiguredMethod:
        own = {key: value for key, value in given.items() if key in recipe.options}
        return _configured(reference, recipe, profile, training or {}, own, increments)

    first, *others = map(configured, names, found)
    return reduce(_share_training, others, first)


def _refuse_unknown(options: Mapping[str, Any], found: Sequence[Recipe]) -> None:
    """Raise UserError if none of the recipes has an option of a given name."""
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
    base, given = recipe.settings(profile), dict(training)
    if factor := given.pop("epoch_scale", None):
        base = scale_epochs(base, factor)
    base_training = {key: value for key, value in base.items() if key in TRAINING_FIELDS}
    resolved = Training(**override_settings(base_training, given), increments=increments)
    chosen = _validated(recipe, {**{k: v for k, v in base.items() if k not in TRAINING_FIELDS}, **options})
    defaults = {option: default for option, (_, default) in recipe.options.items()}
    return ConfiguredMethod(name, recipe.build(resolved, **chosen), resolved, chosen, defaults)


def _validated(recipe: Recipe, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of a recipe, with defaults where none is given; raise UserError if a type does not fit."""
    model: Any = create_model(recipe.name, __config__=ConfigDict(extra="forbid"), **typing.cast(Any, recipe.options))
    try:
        return dict(model(**options))
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "missing":
            wanted = first["loc"][0]
            raise UserError(f"options: {recipe.name} needs {wanted!r}; give --option {wanted}=VALUE") from None
        raise UserError(f"options.{first['loc'][0]}: {first['input']!r} does not fit: {first['msg']}") from None


def _share_training(first: ConfiguredMethod, other: ConfiguredMethod) -> ConfiguredMethod:
    """Return the first method with the other one's main scorer under the other one's name."""
    name = other.folder
    if name in first.method.scorers or name in RESERVED:
        raise UserError(f"method: another part of the run is called {name!r}; give the method another name")
    if first.method.training_key is None or first.method.training_key != other.method.training_key:
        raise UserError(
            f"method: {name} does not train as {first.name} does, so they can't share a run; run each alone"
        )
    scorers = {**first.method.scorers, name: other.method.scorers[MAIN]}
    return replace(first, method=replace(first.method, scorers=scorers), sharing={**first.sharing, name: other})
