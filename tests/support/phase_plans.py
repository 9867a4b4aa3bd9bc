"""Plans of several phases and stages, followed through two small tasks."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import tiny_runs
from ssil.benchmark.run_setup import RunSetup, set_up
from ssil.core.classes import ClassTable
from ssil.learning.batches import Mixed
from ssil.learning.engine import learn, start
from ssil.learning.memory import Memory
from ssil.learning.method import Loss, Method, Phase, Stage, Term, mean
from ssil.learning.schedule import Schedule
from ssil.learning.snapshot import MAIN, Scorer, Snapshot, Step
from ssil.learning.task import Progress, ProgressReport
from ssil.nn.heads import LinearHead
from ssil.nn.network import Network, Output

SCHEDULE = Schedule(epochs=2, lr=(0.1, 0.05), milestones=(1,), momentum=0.9, weight_decay=0.01)
IDLE = replace(SCHEDULE, lr=(0.0, 0.0))
PLAIN = Schedule(epochs=1, lr=(0.1,), momentum=0.0, weight_decay=0.0)


def two_tasks(folder: Path) -> RunSetup:
    """Of two classes with 5 images each, in double precision."""
    dataset = tiny_runs.patterns(folder / "patterns.npz", [5] * 4)
    return set_up(tiny_runs.config(dataset, tasks=2, precision="64-true"))


def cross_entropy(step: Step) -> dict[str, Term]:
    return {"ce": mean(F.cross_entropy(step.scores, step.labels, reduction="none"))}


def phase(name: str, schedule: Schedule = SCHEDULE, loss: Loss = cross_entropy, **more: Any) -> Phase:
    return Phase(name, loss, Mixed(4), schedule, **more)


class Seen(list[Step]):
    """A loss that remembers its steps."""

    def __call__(self, step: Step) -> dict[str, Term]:
        self.append(step)
        return cross_entropy(step)


class Scaled(Scorer):
    """Scores that are the logits times a learnt number."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        return self.scale * output.logits


def method(*parts: Phase | Stage, scorer: Callable[[], Scorer] = Scorer) -> Method:
    return Method(lambda classes: parts, head=LinearHead, scorers={MAIN: scorer})


State = dict[str, Tensor]


def state(module: nn.Module) -> State:
    """Weights and buffers, as they are now."""
    return {name: value.clone() for name, value in module.state_dict().items()}


def equal(these: State, those: State) -> bool:
    return these.keys() == those.keys() and all(torch.equal(these[name], those[name]) for name in these)


def weights(network: Network) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in network.parameters()]


def memory(plan: RunSetup) -> Memory:
    """Two exemplars of each class of the first task."""
    indices = plan.stream.tasks[0].indices
    labels = plan.context.samples.labels[indices]
    return Memory((indices[labels == 0][:2], indices[labels == 1][:2]))


def learn_first(plan: RunSetup, recipe: Method, ends: dict[str, Network] | None = None) -> tuple[Progress, Snapshot]:
    """What is left after the first task; `ends` gets a copy of the network after each phase."""
    return _learn(plan, recipe, None, Memory(), 0, ends)


def learn_second(
    plan: RunSetup, recipe: Method, before: Snapshot, ends: dict[str, Network] | None = None
) -> tuple[Progress, Snapshot]:
    return _learn(plan, recipe, before, memory(plan), 1, ends)


def _learn(
    plan: RunSetup,
    recipe: Method,
    before: Snapshot | None,
    exemplars: Memory,
    number: int,
    ends: dict[str, Network] | None,
) -> tuple[Progress, Snapshot]:
    task = plan.stream.tasks[number]
    progress = start(recipe, before, task, plan.context)

    def observer(progress: Progress, report: ProgressReport) -> None:
        if ends is not None and (report.epoch, report.step) == (report.epochs, 0):
            ends[report.phase] = deepcopy(progress.network)

    return progress, learn(recipe, before, exemplars, task, plan.context, progress, observer)
