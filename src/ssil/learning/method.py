"""What a method is: a plan of training phases and stages. A method's file describes training; the engine trains."""

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
from ssil.learning.snapshot import MAIN, Scorer, Step, TaskState
from ssil.nn.branches import Branching
from ssil.nn.heads import Head

Count = Annotated[int, Field(ge=1)]
Temperature = Annotated[float, Field(gt=0)]
Rate = Annotated[float, Field(gt=0)]
Momentum = Annotated[float, Field(ge=0, lt=1)]
Weight = Annotated[float, Field(ge=0)]


class Term(NamedTuple):
    """One term of a loss: one value per sample, and the number by which the sum of the values is divided.

    The divisor is the size of the mini-batch or of a group of its samples. If a batch is divided among processes or
    into parts, each gives its own divisor, and the trainer divides by their sum. A divisor must therefore not depend
    on outputs: only on the labels, and on which images are exemplars.
    """

    values: Tensor
    """(number of samples that have a value,)"""
    divisor: int
    """`mean(values)` gives their number."""


Loss = Callable[[Step], dict[str, Term]]


def mean(values: Tensor) -> Term:
    """Return the term whose value is the mean over the samples that have a value."""
    return Term(values, len(values))


def cross_entropy(step: Step) -> dict[str, Term]:
    """Return the loss of plain training: cross-entropy with one softmax over all seen classes."""
    return {"ce": mean(losses.cross_entropy(step.output.logits, step.labels))}


class StepPosition(NamedTuple):
    """The position of a step within its phase, and the number of images in its global batch."""

    epoch: int
    step: int
    images: int


Hook = Callable[[TaskState, StepPosition], None]
ImageSelection = Callable[[Pool, ClassTable, Randomness], Pool]
"""Returns the images of a pool that a phase trains on. The randomness is the run's, as for selecting exemplars."""


@dataclass(frozen=True)
class Phase:
    """Training for some epochs, described as data."""

    name: str
    """What records and progress call it; the first one is usually "main"."""
    loss: Loss
    """Gets a `Step` and returns a dictionary of named terms, whose sum is minimised."""
    batches: Batches
    """Which images a batch holds: `Mixed`, `Replay` or `NewOnly`."""
    schedule: Schedule
    """Epochs and learning rates: `Training.schedule(task)` or `Training.tuning(...)`."""
    teachers: tuple[str, ...] = ()
    """The teachers whose output the loss needs: "old" is the model before the task, others have a `keep_as` name."""
    start: Literal["current", "previous", "fresh"] = "current"
    """Train the network as it is, as it was at the start of the task, or a newly initialised one."""
    images: ImageSelection | None = None
    """Selects the images to train on; None for all."""
    trained: Literal["network", "head", "scorer"] = "network"
    """The part of the model to train; the rest is frozen and in eval mode. A scorer is trained on the network's outputs
    under the test transform."""
    frozen: tuple[str, ...] = ()
    """Parts of the network, such as "backbone.stem", that are frozen and in eval mode although `trained` has them."""
    rates: Mapping[str, float] = field(default_factory=dict)
    """Parts of the network with a learning rate of their own, and what the schedule's is multiplied by for them. Of
    two parts, one inside the other, the inner one's counts."""
    keep_as: str | None = None
    """The name under which later phases can use the resulting model as a teacher."""
    gradients: Hook | None = None
    """Called before each optimiser step; may change the gradients."""
    project: Hook | None = None
    """Called after each optimiser step; may change the weights."""

    def __post_init__(self) -> None:
        if self.trained == "scorer" and self.teachers:
            raise UserError(f"method: phase {self.name!r} trains a scorer, which has no teachers; leave them out")


@dataclass(frozen=True)
class Stage:
    """A computation without gradient steps, such as imprinting or weight alignment."""

    name: str
    """What records and progress call it."""
    run: Callable[[TaskState], None]
    """May change the network and the scorers of the state in place."""


TaskPlan = tuple[Phase | Stage, ...]


@dataclass(frozen=True)
class StoredValues:
    """What a method keeps with each exemplar beside its image; losses find it in `Step.stored`."""

    compute: Callable[[TaskState, Tensor], Mapping[str, Tensor]]
    """(the end of the task, indices of images that become exemplars) -> floating-point tensors with a row for each."""
    per_class: tuple[str, ...] = ()
    """The names of the tensors whose columns are the classes seen so far. The columns of later classes are NaN."""


@dataclass(frozen=True)
class Requirements:
    """What a method needs beside the new images, and what it does after its main phase."""

    memory: Literal["none", "budget", "all"]
    training: bool
    """Whether any phase trains; without one, only statistics of features are computed."""
    teacher: bool
    held_out: bool
    branches: bool
    """Whether a task adds a branch to the network."""
    stored: bool
    """Whether values are kept with each exemplar beside the image."""
    post_processing: tuple[str, ...]
    """The names of phases and stages after the main phase, and the scorer if it is not the plain one."""


@dataclass(frozen=True)
class Method:
    """The result of a method file: all that the engine needs to learn a task."""

    plan: Callable[[ClassTable], TaskPlan]
    """The phases and stages of a task, given the class table after it."""
    head: Callable[[int], Head]
    """Creates a head without classes for features of the given width."""
    scorers: Mapping[str, Callable[[], Scorer]] = field(default_factory=lambda: {MAIN: Scorer})
    memory: Literal["none", "budget", "all"] = "budget"
    """The exemplars that the method uses: none, as many as the run's memory budget allows, or all images."""
    final_relu: bool = True
    """Whether the backbone's features end with a ReLU; cosine heads need negative values too."""
    branches: Branching | None = None
    """What a stage may add to the network for a task, with `TaskState.network.add_branch`; None for nothing."""
    training_key: Hashable = None
    """Methods with equal values other than None train identically, and can share one training."""
    stored: StoredValues | None = None
    """What the memory keeps with each exemplar beside its image; None for nothing."""

    def __post_init__(self) -> None:
        if MAIN not in self.scorers:
            raise UserError(f"method: its scorers are {[*self.scorers]}; call the one that it is judged by {MAIN!r}")

    def requirements(self) -> Requirements:
        """Return what the plan of a second task needs."""
        phases = [part for part in self._second_plan() if isinstance(part, Phase)]
        scorer = type(self.scorers[MAIN]())
        return Requirements(
            self.memory,
            training=bool(phases),
            teacher=any(phase.teachers for phase in phases),
            held_out=any(phase.trained == "scorer" for phase in phases),
            branches=self.branches is not None,
            stored=self.stored is not None,
            post_processing=(
                *[part.name for part in self.after_main()],
                *[f"{scorer.__name__} scores"] * (scorer is not Scorer),
            ),
        )

    def after_main(self) -> TaskPlan:
        """Return what follows the phase called "main", or else the first phase, in the plan of a second task.

        Of a plan without phases that is all.
        """
        parts = self._second_plan()
        names = [part.name for part in parts if isinstance(part, Phase)]
        if not names:
            return parts
        main = "main" if "main" in names else names[0]
        return parts[[part.name for part in parts].index(main) + 1 :]

    def _second_plan(self) -> TaskPlan:
        return self.plan(ClassTable(("?",) * 4, (0, 2, 4)))
