"""iCaRL: Incremental Classifier and Representation Learning (Rebuffi et al., CVPR 2017)."""

from functools import partial
from typing import Literal

from torch.nn import functional as F

from ssil.core.classes import ClassTable
from ssil.learning import losses
from ssil.learning.batches import Mixed
from ssil.learning.method import Method, Phase, Temperature, Term, cross_entropy, mean
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.learning.scorers import NearestMean
from ssil.learning.snapshot import MAIN, Scorer, Step
from ssil.nn.heads import LinearHead


@register(
    paper={"epochs": 60, "milestones": (20, 30, 40, 50), "decay": 0.2},
    official={"kd_tau_sq": True, "nme_unit_means": False},
)
def icarl(
    training: Training,
    *,
    loss: Literal["softmax", "bce"] = "softmax",
    temperature: Temperature = 2.0,
    kd_tau_sq: bool = False,
    nme_new_classes: Literal["all", "exemplars"] = "all",
    nme_unit_means: bool = True,
) -> Method:
    """iCaRL: incremental classifier and representation learning (Rebuffi et al., CVPR 2017): nearest class mean.

    As in SS-IL's comparison, it learns by one softmax and task-wise distillation, by temperature**2 with `kd_tau_sq`.
    `loss` = bce is the original's, the mean over a sigmoid for each output, which wants a rate of 2 (--lr 2
    --weight-decay 1e-5). The mean of an old class is that of its exemplars. The mean of a new class is that of all
    its images, or (`nme_new_classes`) of as many random ones as old classes have. Means are taken under the test
    transform (SS-IL's authors: under augmentation) and brought to length 1 (`nme_unit_means`; SS-IL's authors: not).
    What the network's own head says is the extra record `cnn`. The original herds its exemplars (--selection herding)
    and also averages over mirrored images, which is left out here.
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
        return {"bce": mean(values.mean(1))}

    def plan(classes: ClassTable) -> tuple[Phase, ...]:
        teachers = ("old",) if classes.old else ()
        chosen = {"softmax": softmax, "bce": bce}[loss]
        return (Phase("main", chosen, Mixed(training.batch), training.schedule(classes.task), teachers),)

    head = partial(LinearHead, init=training.new_head_init)
    return Method(plan, head, scorers={MAIN: partial(NearestMean, nme_new_classes, nme_unit_means), "cnn": Scorer})
