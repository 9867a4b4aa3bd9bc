"""What methods share whose networks grow a branch for a task (DER, MEMO, FOSTER): stages, the auxiliary loss, a plan.

A phase freezes branches by their names: `frozen=("backbone.old",)` keeps all but the newest as they are, batch-norm
statistics included.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ssil.core.classes import ClassTable
from ssil.learning import losses
from ssil.learning.batches import Mixed
from ssil.learning.method import Phase, Stage, TaskPlan, Term, mean
from ssil.learning.schedule import Training
from ssil.learning.snapshot import Step, TaskState

OLD = "backbone.old"
"""The branches of earlier tasks."""
SHARED = "backbone.shared"
"""The stages that all branches share."""


@torch.no_grad()
def add_branch(state: TaskState) -> None:
    """Add a branch that starts as a copy of the newest; the head's weights of the features before it stay."""
    state.network.add_branch(state.random.at("branch"))


def drop_auxiliary_head(state: TaskState) -> None:
    """Remove the auxiliary head."""
    state.network.auxiliary = None


def auxiliary_labels(labels: Tensor, old: int) -> Tensor:
    """The labels of DER's auxiliary head: 0 for every old class, 1, 2, ... for the new ones.

    >>> auxiliary_labels(torch.tensor([0, 4, 5, 6]), old=5)
    tensor([0, 0, 1, 2])
    """
    return (labels - old + 1).clamp(min=0)


@dataclass(frozen=True)
class Expansion:
    """The plan of DER and MEMO, whose branches differ in size alone."""

    training: Training
    auxiliary_weight: float
    frozen: tuple[str, ...]
    """The parts of the network that later tasks keep as they are."""

    def loss(self, step: Step) -> dict[str, Term]:
        """L_H + lambda_a L_Ha (DER, Eq. 4): cross-entropy over all classes, and of the auxiliary head.

        The auxiliary head sees the newest branch alone, and tells the new classes from each other and from old ones.
        """
        terms = {"ce": mean(losses.cross_entropy(step.output.logits, step.labels))}
        if step.output.auxiliary is not None:
            values = losses.cross_entropy(step.output.auxiliary, auxiliary_labels(step.labels, step.classes.old))
            terms["auxiliary"] = mean(self.auxiliary_weight * values)
        return terms

    def plan(self, classes: ClassTable, *after: Phase | Stage) -> TaskPlan:
        """Return the plan of a task; `after` follows its main phase, unless the task is the first or has no new class.

        Such a task adds no branch, but trains the newest one further.
        """
        frozen = self.frozen if classes.old else ()
        main = Phase("main", self.loss, Mixed(self.training.batch), self.training.schedule(classes.task), frozen=frozen)
        if not (classes.old and classes.new):
            return (main,)
        return Stage("expand", self._expand), main, Stage("drop_auxiliary", drop_auxiliary_head), *after

    def _expand(self, state: TaskState) -> None:
        add_branch(state)
        state.network.add_auxiliary_head(state.classes.new + 1, state.random.at("auxiliary"))
