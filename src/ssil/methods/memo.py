"""MEMO: A Model or 603 Exemplars: Towards Memory-Efficient Class-Incremental Learning (Zhou et al., ICLR 2023)."""

from functools import partial
from typing import Literal

from ssil.core.classes import ClassTable
from ssil.learning.expansion import OLD, SHARED, Expansion
from ssil.learning.method import Method, Stage, TaskPlan, Weight
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.learning.stages import align_new_rows
from ssil.nn.heads import LinearHead


@register()
def memo(training: Training, *, auxiliary_weight: Weight = 1.0, shared: Literal["train", "freeze"] = "train") -> Method:
    """MEMO: A Model or 603 Exemplars (Zhou et al., ICLR 2023): a further last stage for each task.

    As DER (`der`), but all branches share the early stages of one backbone (the generalised blocks), and a task adds
    a copy of the last stage only (a specialised block). Last stages of earlier tasks stay as they are, batch-norm
    statistics included. Then the rows of new classes get the mean norm of old ones.

    Departures: a task without new classes adds no stage. The backbone must have stages, as ResNets and
    EfficientNets have.

    Args:
        auxiliary_weight: The weight of the auxiliary head's loss.
        shared: "train" trains the shared stages in every task, as the authors do for tasks of equal size, so that the
            input of old last stages changes; "freeze" keeps them after the first task, for a large one.
    """
    expansion = Expansion(training, auxiliary_weight, (OLD, SHARED) if shared == "freeze" else (OLD,))

    def plan(classes: ClassTable) -> TaskPlan:
        return expansion.plan(classes, Stage("align", align_new_rows))

    return Method(plan, head=partial(LinearHead, init=training.new_head_init), branches="last stage")
