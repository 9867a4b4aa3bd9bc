"""iCaRL: Incremental Classifier and Representation Learning (Rebuffi et al., CVPR 2017)."""

from functools import partial
from typing import Literal

from torch.nn import functional as F

from ssil import losses
from ssil.batches import Mixed
from ssil.method import Method, Phase, Temperature, Term, cross_entropy, mean
from ssil.nn import LinearHead
from ssil.registry import register
from ssil.schedule import Training
from ssil.scorers import NearestMean
from ssil.snapshot import MAIN, Scorer, Step
from ssil.types import Classes


@register(paper={"epochs": 60, "milestones": (20, 30, 40, 50), "decay": 0.2}, official={"kd_tau_sq": True})
def icarl(
    training: Training,
    *,
    loss: Literal["softmax", "bce"] = "softmax",
    temperature: Temperature = 2.0,
    kd_tau_sq: bool = False,
    nme_new_classes: Literal["all", "exemplars"] = "all",
) -> Method:
    """iCaRL: incremental classifier and representation learning (Rebuffi et al., CVPR 2017): nearest class mean.

    As in SS-IL's comparison, it learns by one softmax and task-wise distillation; `loss` = bce is the original's, a
    sigmoid for each output, which has no temperature. Class means are of exemplars; those of new classes of all their
    images, or (`nme_new_classes`) of as many as old classes have. They are taken under the test transform and brought
    to length 1, unlike in the code of SS-IL's authors. What the network's own head answers is the extra record `cnn`.
    The original's exemplars are herded (--selection herding).
    """

    def softmax(step: Step) -> dict[str, Term]:
        terms = cross_entropy(step)
        if step.teachers:
            student, teacher = step.output.logits, step.teachers["old"].output.logits
            values = losses.tkd(student, teacher, step.classes.old_blocks(), temperature)
            terms["kd"] = mean(values * (temperature**2 if kd_tau_sq else 1.0))
        return terms

    def bce(step: Step) -> dict[str, Term]:
        targets = F.one_hot(step.labels, step.classes.seen).to(step.output.logits)
        if step.teachers:
            targets[:, : step.classes.old] = step.teachers["old"].output.logits.sigmoid()
        values = F.binary_cross_entropy_with_logits(step.output.logits, targets, reduction="none")
        return {"bce": mean(values.sum(1))}

    def plan(classes: Classes) -> tuple[Phase, ...]:
        teachers = ("old",) if classes.old else ()
        chosen = {"softmax": softmax, "bce": bce}[loss]
        return (Phase("main", chosen, Mixed(training.batch), training.schedule(classes.task), teachers),)

    head = partial(LinearHead, init=training.new_head_init)
    return Method(plan, head, scorers={MAIN: partial(NearestMean, nme_new_classes), "cnn": Scorer})
