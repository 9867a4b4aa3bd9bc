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

    The form in which SS-IL's paper discusses it. Departure from the original, which also trains the new head alone at
    first: that warm-up is left out.

    Args:
        temperature: The tau of distillation.
        kd_tau_sq: Multiply distillation by temperature**2.
        min_group: A departure. Fewer new classes than this share one softmax with all others, since a softmax over
            a single class gives no signal; consecutive tasks so small share one block of TKD.
    """

    def loss(step: Step) -> dict[str, Term]:
        old = step.classes.old if step.classes.new >= min_group else 0
        # For an image of a new class: the softmax over the new task's classes alone, as LwF's own head has it.
        terms = {"ce": mean(losses.separated_cross_entropy(step.output.logits, step.labels, old))}
        if step.teachers:
            student, teacher = step.output.logits, step.teachers["old"].output.logits
            values = losses.tkd(student, teacher, step.classes.old_blocks(min_group), temperature)  # SS-IL, Eq. 3
            terms["kd"] = mean(values * (temperature**2 if kd_tau_sq else 1.0))
        return terms

    def plan(classes: ClassTable) -> tuple[Phase, ...]:
        teachers = ("old",) if classes.old else ()
        return (Phase("main", loss, NewOnly(training.batch), training.schedule(classes.task), teachers),)

    return Method(plan, head=partial(LinearHead, init=training.new_head_init), memory="none")
