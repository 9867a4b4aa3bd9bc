"""LwF: Learning without Forgetting (Li & Hoiem, ECCV 2016), in its task-wise form."""

from functools import partial

from ssil.core.classes import ClassTable
from ssil.learning import losses
from ssil.learning.batches import NewOnly
from ssil.learning.method import Method, Phase, Temperature, Term, mean
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.learning.snapshot import Step
from ssil.nn.heads import LinearHead


@register(official={"kd_tau_sq": True})
def lwf(training: Training, *, temperature: Temperature = 2.0, kd_tau_sq: bool = False, min_group: int = 2) -> Method:
    """LwF: Learning without Forgetting (Li & Hoiem, ECCV 2016): new classes' softmax and TKD, no exemplars.

    As in SS-IL, fewer new classes than `min_group` share one softmax with all others: their own would give no signal.
    """

    def loss(step: Step) -> dict[str, Term]:
        old = step.classes.old if step.classes.new >= min_group else 0
        terms = {"ce": mean(losses.separated_cross_entropy(step.output.logits, step.labels, old))}
        if step.teachers:
            blocks = step.classes.old_blocks(min_group)
            values = losses.tkd(step.output.logits, step.teachers["old"].output.logits, blocks, temperature)
            terms["kd"] = mean(values * (temperature**2 if kd_tau_sq else 1.0))
        return terms

    def plan(classes: ClassTable) -> tuple[Phase, ...]:
        teachers = ("old",) if classes.old else ()
        return (Phase("main", loss, NewOnly(training.batch), training.schedule(classes.task), teachers),)

    return Method(plan, head=partial(LinearHead, init=training.new_head_init), memory="none")
