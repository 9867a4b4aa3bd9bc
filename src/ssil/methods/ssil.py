"""SS-IL: Separated Softmax for Incremental Learning (Ahn et al., ICCV 2021), and its ablations."""

from functools import partial
from typing import Literal

from torch import Tensor

from ssil.core.classes import ClassTable
from ssil.learning import losses
from ssil.learning.batches import Batches, ClassBalanced, Mixed, Replay
from ssil.learning.method import Count, Method, Phase, Temperature, Term, mean
from ssil.learning.registry import register, setting
from ssil.learning.schedule import Training
from ssil.learning.snapshot import Step
from ssil.nn.heads import LinearHead

Rule = Literal["replay", "mixed"]


@register(official={"lr_by_task": True, "kd_tau_sq": True})
def ssil(
    training: Training,
    *,
    softmax: Literal["separate", "joint"] = "separate",
    distil: Literal["tkd", "gkd", "none"] = "tkd",
    batches: Rule = "replay",
    replay_batch: Count | None = None,
    temperature: Temperature = 2.0,
    kd_tau_sq: bool = False,
    tkd_reduction: Literal["sum", "mean"] = "sum",
    min_group: int = 2,
) -> Method:
    """SS-IL: Separated Softmax for Incremental Learning (Ahn et al., ICCV 2021).

    Old and new classes have a softmax each (CE-SS), distillation goes task by task (TKD), and every batch holds
    exemplars (ER). The equations weigh distillation by 1; `kd_tau_sq` multiplies it by temperature**2, as the
    authors' code does. `min_group` is a departure: over fewer old or new classes than that, a separate softmax gives
    (almost) no signal, so the task uses one softmax over all classes on class-balanced batches, and consecutive
    tasks so small share a block of TKD.
    """
    replay = Replay(training.batch, replay_batch or training.replay)
    usual: Batches = replay if batches == "replay" else Mixed(training.batch)

    def distillation(step: Step) -> Tensor:
        student, teacher = step.output.logits, step.teachers["old"].output.logits
        if distil == "gkd":
            return losses.gkd(student, teacher, temperature)
        blocks = step.classes.old_blocks(min_group)
        values = losses.tkd(student, teacher, blocks, temperature)
        return values if tkd_reduction == "sum" else values / (len(blocks) - 1)

    def loss(step: Step, separate: bool) -> dict[str, Term]:
        old = step.classes.old if separate else 0
        terms = {"ce": mean(losses.separated_cross_entropy(step.output.logits, step.labels, old))}
        if step.teachers:
            terms["kd"] = mean(distillation(step) * (temperature**2 if kd_tau_sq else 1.0))
        return terms

    def plan(classes: ClassTable) -> tuple[Phase, ...]:
        separate = softmax == "separate"
        small = separate and classes.old > 0 and min(classes.old, classes.new) < min_group
        return (
            Phase(
                "main",
                loss=partial(loss, separate=separate and not small),
                batches=ClassBalanced(training.batch) if small else usual,
                schedule=training.schedule(classes.task),
                teachers=("old",) if distil != "none" and classes.old else (),
            ),
        )

    return Method(plan, head=partial(LinearHead, init=training.new_head_init))


BATCHES = ("batches", "replay_batch")
KD = (*BATCHES, "temperature", "kd_tau_sq")
CODE = {"kd_tau_sq": True}
VANILLA = {"batches": "mixed"}
CE = "CE: one softmax and no distillation (an ablation of SS-IL, ICCV 2021, Fig. 6)."
CE_SS = "CE-SS: separated softmax without distillation (an ablation of SS-IL, ICCV 2021, Fig. 6)."
CE_TKD = "CE+TKD: one softmax, task-wise distillation (SS-IL, ICCV 2021, section 3 and Fig. 8)."
CE_GKD = "CE+GKD: one softmax, distillation over all old classes at once (SS-IL, ICCV 2021, section 3 and Fig. 8)."

setting(ssil, "ce", CE, BATCHES, VANILLA, softmax="joint", distil="none")
setting(ssil, "ce_ss", CE_SS, (*BATCHES, "min_group"), VANILLA, distil="none")
setting(ssil, "ce_tkd", CE_TKD, (*KD, "tkd_reduction"), CODE, softmax="joint", batches="mixed")
setting(ssil, "ce_gkd", CE_GKD, KD, CODE, softmax="joint", distil="gkd", batches="mixed")
