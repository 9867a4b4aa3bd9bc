"""A method followed through a small stream: what its losses saw and said, and what it left behind."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

import tiny_runs
from ssil.benchmark.run_setup import Plan, prepare
from ssil.core.samples import Images, Samples
from ssil.learning import memory as memories
from ssil.learning.engine import learn
from ssil.learning.memory import Memory
from ssil.learning.method import Method, Phase, Stage, Term
from ssil.learning.snapshot import Snapshot, Step, TeacherOutput
from ssil.learning.task import Task

IMAGES = (6, 5, 1, 4, 6, 3)
SETTINGS: dict[str, Any] = {
    "task_sizes": (3, 1, 2),
    "class_order": 0,
    "memory": 9,
    "epochs": 2,
    "later_epochs": 2,
    "lr": 0.1,
    "milestones": (1,),
    "decay": 0.1,
    "momentum": 0.9,
    "weight_decay": 1e-4,
}
"""Uneven tasks, one of them of a single class (not the one that has one image); the same training for all methods."""


class Recorded:
    """Pictures that remember which of them were asked for."""

    def __init__(self, images: Images) -> None:
        self.images = images
        self.asked: list[Tensor] = []

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.images.shape

    def __len__(self) -> int:
        return len(self.images)

    def to(self, device: torch.device) -> "Recorded":
        return Recorded(self.images.to(device))

    @property
    def ahead(self) -> int:
        return self.images.ahead

    def take(self, indices: Tensor) -> "Recorded":
        return Recorded(self.images.take(indices))

    def hold(self, indices: Tensor, form: Literal["bytes", "decoded"]) -> None:
        self.images.hold(indices, form)

    def content(self) -> Iterable[bytes]:
        return self.images.content()

    def keys(self) -> list[bytes]:
        return self.images.keys()

    def fetch(self, indices: Tensor, draws: Any = None) -> Tensor:
        self.asked.append(indices)
        return self.images.fetch(indices, draws)


@dataclass(frozen=True)
class Seen:
    """One step of a loss: the batch, the parts, their gradient at the logits or the scorer, what the teachers said."""

    phase: Phase
    indices: Tensor
    labels: Tensor
    parts: Mapping[str, Term]
    gradient: Tensor
    teachers: Mapping[str, TeacherOutput]


@dataclass(frozen=True)
class Lesson:
    """One task: what there was before it, what happened, what it left."""

    task: Task
    memory: Memory
    teacher: Snapshot | None
    teacher_before: Mapping[str, Tensor]
    snapshot: Snapshot
    scores: Tensor
    """Of all test pictures, just after the task."""
    asked: list[Tensor]
    """The training pictures, as they were asked for."""
    seen: list[Seen] = field(repr=False)


def copied(snapshot: Snapshot | None) -> dict[str, Tensor]:
    """All weights and buffers of a snapshot's network."""
    return {name: value.clone() for name, value in snapshot.network.state_dict().items()} if snapshot else {}


def plan_for(name: str, dataset: Path, **settings: Any) -> Plan:
    return prepare(tiny_runs.config(dataset, **SETTINGS | {"method": name} | settings))


def scores(snapshot: Snapshot, plan: Plan, batch: int = 1000) -> Tensor:
    """Of all test pictures, so many at a time."""
    test = plan.stream.test
    parts = torch.arange(len(test)).split(batch)
    pictures = (plan.context.transform.test(test.images.fetch(part)) for part in parts)
    with torch.inference_mode():
        return torch.cat([snapshot.scores(snapshot.network(images)) for images in pictures])


@cache
def follow(name: str, dataset: Path, **options: Any) -> tuple[Lesson, ...]:
    """The fold without a disk."""
    plan = plan_for(name, dataset, options=options)
    lessons: list[Lesson] = []
    memory, snapshot = Memory(), None
    for task in plan.stream.tasks:
        lesson = _lesson(plan, task, memory, snapshot)
        lessons.append(lesson)
        snapshot = lesson.snapshot
        arrived = memories.by_class(task.indices, plan.context.samples.labels)
        select = memories.random_selection(plan.context.random)
        memory = memories.update(memory, arrived, task.classes, plan.budget, select)
    return tuple(lessons)


def _lesson(plan: Plan, task: Task, memory: Memory, teacher: Snapshot | None) -> Lesson:
    pictures, seen = Recorded(plan.context.samples.images), list[Seen]()
    context = replace(plan.context, samples=Samples(pictures, plan.context.samples.labels))
    before = copied(teacher)
    snapshot = learn(_watched(plan.configured.method, seen, pictures), teacher, memory, task, context)
    return Lesson(task, memory, teacher, before, snapshot, scores(snapshot, plan), pictures.asked, seen)


def _watched(method: Method, seen: list[Seen], pictures: Recorded) -> Method:
    def watched(part: Phase | Stage) -> Phase | Stage:
        return part if isinstance(part, Stage) else watched_phase(part)

    def watched_phase(phase: Phase) -> Phase:
        def loss(step: Step) -> dict[str, Term]:
            terms = phase.loss(step)
            total = torch.stack([term.values.sum() / max(term.divisor, 1) for term in terms.values()]).sum()
            trained = [*step.scorer.parameters()] if phase.trained == "scorer" else [step.output.logits]
            gradients = torch.autograd.grad(total, trained, retain_graph=True)
            gradient = torch.cat([gradient.flatten() for gradient in gradients])
            seen.append(Seen(phase, pictures.asked[-1], step.labels, terms, gradient, step.teachers))
            return terms

        return replace(phase, loss=loss)

    return replace(method, plan=lambda classes: tuple(map(watched, method.plan(classes))))
