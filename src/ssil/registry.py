"""Methods by name: a recipe function is found by its name, and its signature is its options, its help, its docs."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ssil.method import Method
from ssil.schedule import Training, scale_milestones

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
