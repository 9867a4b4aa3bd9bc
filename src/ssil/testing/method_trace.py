"""Learn a small stream with a method and keep a trace of it: every batch, loss, teacher output and snapshot."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from ssil.benchmark import run_setup
from ssil.benchmark.record import Record
from ssil.benchmark.run_setup import RunSetup
from ssil.benchmark.runner import run
from ssil.core.samples import Images, Samples
from ssil.learning import memory as memories
from ssil.learning.engine import learn
from ssil.learning.exemplar_values import with_values
from ssil.learning.memory import Memory
from ssil.learning.method import Method, Phase, Stage, Term
from ssil.learning.registry import Recipe, configure, find_recipe
from ssil.learning.snapshot import Snapshot, Step, TeacherOutput
from ssil.learning.task import Task
from ssil.testing import small_stream
from ssil.testing.small_stream import IMAGES, SETTINGS


class TracedImages:
    """Images that keep a list of the indices that were fetched."""

    def __init__(self, images: Images) -> None:
        self.images = images
        self.fetched: list[Tensor] = []

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width, channels."""
        return self.images.shape

    def __len__(self) -> int:
        return len(self.images)

    def to(self, device: torch.device) -> "TracedImages":
        """Return the images on another device, with a list of their own."""
        return TracedImages(self.images.to(device))

    @property
    def prefetch_depth(self) -> int:
        """The number of batches to prefetch."""
        return self.images.prefetch_depth

    def take(self, indices: Tensor) -> "TracedImages":
        """Return the images at `indices`, with a list of their own."""
        return TracedImages(self.images.take(indices))

    def hold(self, indices: Tensor, form: Literal["bytes", "decoded"]) -> None:
        """Keep the images at `indices` in memory."""
        self.images.hold(indices, form)

    def content(self) -> Iterable[bytes]:
        """Return what the data set's fingerprint is made of."""
        return self.images.content()

    def keys(self) -> list[bytes]:
        """Return a digest of each image."""
        return self.images.keys()

    def fetch(self, indices: Tensor, draws: Any = None) -> Tensor:
        """Note the indices, and return the images at them."""
        self.fetched.append(indices)
        return self.images.fetch(indices, draws)


@dataclass(frozen=True)
class LossCall:
    """One call of a phase's loss."""

    phase: Phase
    indices: Tensor
    """The training images of the batch."""
    labels: Tensor
    replayed: Tensor
    """Which of them are replayed."""
    terms: Mapping[str, Term]
    gradient: Tensor
    """The gradient of the sum of the terms with respect to the logits, or to the scorer if the phase trains that."""
    teachers: Mapping[str, TeacherOutput]


@dataclass(frozen=True)
class TaskTrace:
    """One task of the stream: the state before it, what happened, and the state after it."""

    task: Task
    memory: Memory
    teacher: Snapshot | None
    """The model of the task before; None in the first task."""
    teacher_before: Mapping[str, Tensor]
    """A copy of the teacher's weights and buffers, taken before the task."""
    snapshot: Snapshot
    scores: Tensor
    """The scores of all test images, right after the task."""
    fetched: list[Tensor]
    """The indices of the training images, as they were fetched."""
    calls: list[LossCall] = field(repr=False)


def weights(snapshot: Snapshot | None) -> dict[str, Tensor]:
    """Return a copy of all weights and buffers of a snapshot's network."""
    return {name: value.clone() for name, value in snapshot.network.state_dict().items()} if snapshot else {}


def equal(these: Mapping[str, Tensor], those: Mapping[str, Tensor]) -> bool:
    """Return whether two groups of tensors are equal bit for bit."""
    return these.keys() == those.keys() and all(_same_bits(these[key], those[key]) for key in these)


def _same_bits(one: Tensor, other: Tensor) -> bool:
    """Compare bytes, not numbers: NaN, which a memory may hold, is not equal to itself."""
    alike = one.shape == other.shape and one.dtype == other.dtype
    return alike and torch.equal(*(part.contiguous().flatten().view(torch.uint8) for part in (one, other)))


def set_up(name: str, dataset: Path, **settings: Any) -> RunSetup:
    """Set up a run of the method `name` on the small stream; `settings` override `SETTINGS`."""
    return run_setup.set_up(small_stream.config(dataset, **SETTINGS | {"method": name} | settings))


def scores(snapshot: Snapshot, plan: RunSetup, batch: int = 1000) -> Tensor:
    """Return a snapshot's scores of all test images, computed `batch` images at a time."""
    test = plan.stream.test
    parts = torch.arange(len(test)).split(batch)
    batches = (plan.context.transform.test(test.images.fetch(part)) for part in parts)
    with torch.inference_mode():
        return torch.cat([snapshot.scores(snapshot.network(images)) for images in batches])


def trace(name: str, dataset: Path, **options: Any) -> tuple[TaskTrace, ...]:
    """Learn the small stream with the method `name`, without a run directory."""
    plan = set_up(name, dataset, options=options)
    tasks: list[TaskTrace] = []
    memory, snapshot = Memory(), None
    for task in plan.stream.tasks:
        tasks.append(_trace_task(plan, task, memory, snapshot))
        snapshot = tasks[-1].snapshot
        arrived = memories.by_class(task.indices, plan.context.samples.labels)
        select = memories.random_selection(plan.context.random)
        chosen = memories.update(memory, arrived, task.classes, plan.budget, select)
        memory = with_values(plan.configured.method, snapshot, chosen, plan.context)
    return tuple(tasks)


def _trace_task(plan: RunSetup, task: Task, memory: Memory, teacher: Snapshot | None) -> TaskTrace:
    images, calls = TracedImages(plan.context.samples.images), list[LossCall]()
    context = replace(plan.context, samples=Samples(images, plan.context.samples.labels))
    before = weights(teacher)
    snapshot = learn(_traced(plan.configured.method, calls, images), teacher, memory, task, context)
    return TaskTrace(task, memory, teacher, before, snapshot, scores(snapshot, plan), images.fetched, calls)


def _traced(method: Method, calls: list[LossCall], images: TracedImages) -> Method:
    """Return the method with losses that note each of their calls in `calls`."""

    def traced(part: Phase | Stage) -> Phase | Stage:
        return part if isinstance(part, Stage) else traced_phase(part)

    def traced_phase(phase: Phase) -> Phase:
        def loss(step: Step) -> dict[str, Term]:
            terms = phase.loss(step)
            calls.append(
                LossCall(
                    phase,
                    images.fetched[-1],
                    step.labels,
                    step.replayed,
                    terms,
                    _gradient(phase, step, terms),
                    step.teachers,
                )
            )
            return terms

        return replace(phase, loss=loss)

    return replace(method, plan=lambda classes: tuple(map(traced, method.plan(classes))))


def _gradient(phase: Phase, step: Step, terms: Mapping[str, Term]) -> Tensor:
    """Return the gradient of the loss; an empty tensor if the loss has none."""
    total = torch.stack([term.values.sum() / max(term.divisor, 1) for term in terms.values()]).sum()
    if not total.requires_grad:
        return total.new_zeros(0)
    trained = [*step.scorer.parameters()] if phase.trained == "scorer" else [step.output.logits]
    gradients = torch.autograd.grad(total, trained, retain_graph=True)
    return torch.cat([gradient.flatten() for gradient in gradients])


@dataclass(frozen=True)
class Trial:
    """A method under check, with the runs that several checks share; each is made when a check first asks for it."""

    name: str
    """The method: a name, or my_file.py:my_method."""
    folder: Path
    """An empty folder for data and runs."""
    options: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def dataset(self) -> Path:
        """The small stream's data."""
        return small_stream.patterns(self.folder / "patterns.npz", IMAGES)

    @cached_property
    def recipe(self) -> Recipe:
        """The registered recipe."""
        return find_recipe(self.name)

    @cached_property
    def method(self) -> Method:
        """The method with its options."""
        return configure(self.name, options=self.options).method

    @cached_property
    def tasks(self) -> tuple[TaskTrace, ...]:
        """The trace of the small stream."""
        return trace(self.name, self.dataset, **self.options)

    @property
    def calls(self) -> Iterator[tuple[TaskTrace, LossCall]]:
        """Every call of a loss, with its task."""
        return ((task, call) for task in self.tasks for call in task.calls)

    @cached_property
    def labels(self) -> Tensor:
        """The label of every training image."""
        return set_up(self.name, self.dataset, options=self.options).context.samples.labels

    def run(self, out: str | None = None, observer: Any = None, **settings: Any) -> Record:
        """Run the method on the small stream, in the sub-folder `out` if one is named."""
        given = {**SETTINGS, **settings, "method": self.name, "options": self.options}
        return run(small_stream.config(self.dataset, **given, out=self.folder / out if out else None), observer)

    @cached_property
    def record(self) -> Record:
        """The record of an uninterrupted run in the sub-folder `whole`."""
        return self.run("whole")
