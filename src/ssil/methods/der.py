"""DER: Dynamically Expandable Representation for Class Incremental Learning (Yan et al., CVPR 2021)."""

from functools import partial
from typing import Literal

from ssil.core.classes import ClassTable
from ssil.learning import losses
from ssil.learning.batches import Mixed
from ssil.learning.expansion import OLD, Expansion
from ssil.learning.method import Count, Method, Phase, Rate, Stage, TaskPlan, Temperature, Term, Weight, mean
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.learning.snapshot import Step
from ssil.learning.stages import align_new_rows, reset_head
from ssil.learning.training_subsets import balanced
from ssil.nn.heads import LinearHead


@register()
def der(
    training: Training,
    *,
    auxiliary_weight: Weight = 1.0,
    classifier: Literal["align", "retrain"] = "align",
    retrain_epochs: Count | None = None,
    retrain_lr: Rate = 0.1,
    retrain_temperature: Temperature = 5.0,
) -> Method:
    """DER: Dynamically Expandable Representation (Yan et al., CVPR 2021): a further backbone for each task.

    A later task adds a copy of the newest backbone and trains it with the head, whose input are the features of all
    backbones; earlier ones stay as they are, batch-norm statistics included. An auxiliary head on the new backbone
    alone, over the new classes and one class for all old ones, is dropped after training. At last the head is
    corrected, since most images that it was trained on are of new classes.

    Departures: no pruning by masks, so the network grows by a whole backbone a task; by default the head is aligned
    as PyCIL does, not drawn anew; a task without new classes adds no backbone.

    Args:
        auxiliary_weight: Lambda_a, the weight of the auxiliary head's loss.
        classifier: "align" multiplies the rows of new classes by the mean norm of old ones over that of new ones, as
            PyCIL does; "retrain" draws the head anew and trains it on a balanced set, as the paper does.
        retrain_epochs: The epochs of retraining; by default 30/170 of the main phase's.
        retrain_lr: The first learning rate of retraining.
        retrain_temperature: Delta, by which logits are divided in retraining.
    """
    expansion = Expansion(training, auxiliary_weight, (OLD,))

    def smoothed(step: Step) -> dict[str, Term]:  # Sec. 3.4, classifier learning
        return {"ce": mean(losses.cross_entropy(step.output.logits / retrain_temperature, step.labels))}

    def plan(classes: ClassTable) -> TaskPlan:
        if classifier == "align":
            return expansion.plan(classes, Stage("align", align_new_rows))
        schedule = training.tuning(30, of=170, lr=retrain_lr, milestones=(15,), wanted=retrain_epochs)
        head = Phase("retrain", smoothed, Mixed(training.batch), schedule, images=balanced, trained="head")
        return expansion.plan(classes, Stage("reset", reset_head), head)

    return Method(plan, head=partial(LinearHead, init=training.new_head_init), branches="backbone")
