"""What a method is: a recipe of training phases. Its file describes; the engine trains."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple

from pydantic import Field
from torch import Tensor

from ssil.batches import Batches
from ssil.nn import Head
from ssil.schedule import Schedule
from ssil.snapshot import MAIN, Step
from ssil.types import Classes, Scorer

Count = Annotated[int, Field(ge=1)]
Temperature = Annotated[float, Field(gt=0)]


class Term(NamedTuple):
    """A part of a loss: per-sample values, and what their sum is divided by (the batch, or a group's members).

    With several processes each gives its own divisor, and the engine divides by their sum.
    """

    values: Tensor
    divisor: int


Loss = Callable[[Step], dict[str, Term]]


def mean(values: Tensor) -> Term:
    """The mean over the mini-batch."""
    return Term(values, len(values))


@dataclass(frozen=True)
class Phase:
    """One stretch of training, described as data."""

    name: str
    loss: Loss
    batches: Batches
    schedule: Schedule
    teachers: tuple[str, ...] = ()
    """The teachers that the loss asks for: "old" is the model of the task before."""
    start: Literal["current", "fresh"] = "current"


@dataclass(frozen=True)
class Method:
    """All that a method file produces."""

    plan: Callable[[Classes], tuple[Phase, ...]]
    """The phases for a task, given the class table after it."""
    head: Callable[[int], Head]
    """From the feature width to a head that has no class yet."""
    scorers: Mapping[str, Callable[[], Scorer]] = field(default_factory=lambda: {MAIN: Scorer})
    memory: Literal["none", "budget", "all"] = "budget"
