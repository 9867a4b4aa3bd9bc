"""What a method is: a recipe of training phases and stages. Its file describes; the engine trains."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple

from pydantic import Field
from torch import Tensor

from ssil.core.classes import ClassTable
from ssil.core.errors import UserError
from ssil.core.randomness import Randomness
from ssil.learning import losses
from ssil.learning.batches import Batches, Pool
from ssil.learning.schedule import Schedule
from ssil.learning.snapshot import MAIN, Scorer, Step, Work
from ssil.nn.heads import Head

Count = Annotated[int, Field(ge=1)]
Temperature = Annotated[float, Field(gt=0)]
Rate = Annotated[float, Field(gt=0)]
Momentum = Annotated[float, Field(ge=0, lt=1)]


class Term(NamedTuple):
    """A part of a loss: per-sample values, and what their sum is divided by (the batch, or a group's members).

    With several processes each gives its own divisor, and the engine divides by their sum. The divisor depends on the
    labels alone, for of a batch that is trained on in parts it must be known beforehand.
    """

    values: Tensor
    divisor: int


Loss = Callable[[Step], dict[str, Term]]


def mean(values: Tensor) -> Term:
    """The mean over the mini-batch, or over those of its samples that the values are of."""
    return Term(values, len(values))


def cross_entropy(step: Step) -> dict[str, Term]:
    """The plain loss: one softmax over all classes seen."""
    return {"ce": mean(losses.cross_entropy(step.output.logits, step.labels))}


class Moment(NamedTuple):
    """Where in a phase a step is, and how many images its global batch has."""

    epoch: int
    step: int
    images: int


Hook = Callable[[Work, Moment], None]
Choice = Callable[[Pool, ClassTable, Randomness], Pool]
"""Which of a task's images a phase trains on; the randomness is the run's, from which exemplars are drawn too."""


@dataclass(frozen=True)
class Phase:
    """One stretch of training, described as data."""

    name: str
    loss: Loss
    batches: Batches
    schedule: Schedule
    teachers: tuple[str, ...] = ()
    """The teachers that the loss asks for: "old" is the model of the task before."""
    start: Literal["current", "previous", "fresh"] = "current"
    """The network as it is, as it was when the task began, or a new one."""
    images: Choice | None = None
    """Which images it trains on; all, if not said otherwise."""
    trained: Literal["network", "head", "scorer"] = "network"
    """What of the model moves; all else is in eval mode. A scorer learns from outputs under the test transform."""
    keep_as: str | None = None
    """The name under which the result is a teacher of the phases that follow."""
    gradients: Hook | None = None
    """Called before the optimiser's step: may change the gradients."""
    project: Hook | None = None
    """Called after the optimiser's step: may change the weights."""

    def __post_init__(self) -> None:
        if self.trained == "scorer" and self.teachers:
            raise UserError(f"method: phase {self.name!r} trains a scorer, which has no teachers; leave them out")


@dataclass(frozen=True)
class Stage:
    """A computation without gradient steps: imprinting, weight alignment."""

    name: str
    run: Callable[[Work], None]


Parts = tuple[Phase | Stage, ...]


@dataclass(frozen=True)
class Needs:
    """What a method asks for beside the new images."""

    memory: Literal["none", "budget", "all"]
    teacher: bool
    held_out: bool
    post_processing: tuple[str, ...]
    """What comes after the main phase, by name, and the scorer if it is not the plain one."""


@dataclass(frozen=True)
class Method:
    """All that a method file produces."""

    plan: Callable[[ClassTable], Parts]
    """What is done for a task, given the class table after it."""
    head: Callable[[int], Head]
    """From the feature width to a head that has no class yet."""
    scorers: Mapping[str, Callable[[], Scorer]] = field(default_factory=lambda: {MAIN: Scorer})
    memory: Literal["none", "budget", "all"] = "budget"
    final_relu: bool = True
    """Whether features are cut at zero; cosine heads want them whole."""
    chain: Hashable = None
    """Methods with the same chain train alike: one training serves the scorers of all of them."""

    def __post_init__(self) -> None:
        if MAIN not in self.scorers:
            raise UserError(f"method: its scorers are {[*self.scorers]}; call the one that it is judged by {MAIN!r}")

    def needs(self) -> Needs:
        """What it asks for, read off the plan of a second task."""
        phases = [part for part in self._second() if isinstance(part, Phase)]
        scorer = type(self.scorers[MAIN]())
        return Needs(
            self.memory,
            teacher=any(phase.teachers for phase in phases),
            held_out=any(phase.trained == "scorer" for phase in phases),
            post_processing=(
                *[part.name for part in self.after_main()],
                *[f"{scorer.__name__} scores"] * (scorer is not Scorer),
            ),
        )

    def after_main(self) -> Parts:
        """What a second task has after the phase called "main", or after its first."""
        parts = self._second()
        names = [part.name for part in parts if isinstance(part, Phase)]
        main = "main" if "main" in names else names[0]
        return parts[[part.name for part in parts].index(main) + 1 :]

    def _second(self) -> Parts:
        return self.plan(ClassTable(("?",) * 4, (0, 2, 4)))
