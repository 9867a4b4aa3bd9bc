"""SS-IL: Separated Softmax for Incremental Learning (Ahn et al., ICCV 2021), and its ablations."""

from functools import partial
from typing import Literal

from torch import Tensor

from ssil.core.classes import ClassTable
from ssil.learning import losses
from ssil.learning.batches import Batches, ClassBalanced, Mixed, Replay
from ssil.learning.method import Count, Method, Phase, Temperature, Term, mean
from ssil.learning.registry import register, register_variant
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
    exemplars (ER). No post-processing. The options `softmax`, `distil` and `batches` select the paper's ablations,
    which have names of their own: `ce`, `ce_ss`, `ce_tkd`, `ce_gkd`.

    Args:
        softmax: "separate" for old and new classes (Eq. 7), or "joint" over all classes (Eq. 4).
        distil: "tkd", one softmax per old task (Eq. 3); "gkd", one over all old classes (Eq. 2); or "none".
        batches: "replay" adds exemplars to every batch of new images (ER); "mixed" shuffles both together.
        replay_batch: Exemplars in a replay batch, N_M; by default the paper's 16 for streams of 20 increments, 32 for
            10, 64 for 5, and a quarter of the batch where the number of increments is unknown.
        temperature: The tau of distillation.
        kd_tau_sq: Multiply distillation by temperature**2, as the authors' code does; the equations do not.
        tkd_reduction: "sum" over the old tasks as in Eq. 3, so that TKD's weight grows with their number, or "mean".
        min_group: A departure from the paper. A softmax over a single class has no gradient. If there are fewer old
            classes or fewer new classes than `min_group`, the task is learnt with one softmax over all classes, on
            class-balanced batches. In TKD, consecutive old tasks with fewer classes share one softmax.
    """
    replay = Replay(training.batch, replay_batch or training.replay)  # Sec. 5, remark; supplement, Algorithm 1
    usual: Batches = replay if batches == "replay" else Mixed(training.batch)

    def distillation(step: Step) -> Tensor:
        student, teacher = step.output.logits, step.teachers["old"].output.logits
        if distil == "gkd":
            return losses.gkd(student, teacher, temperature)  # Eq. 2
        bounds = step.classes.old_blocks(min_group)
        values = losses.tkd(student, teacher, bounds, temperature)  # Eq. 3
        return values if tkd_reduction == "sum" else values / (len(bounds) - 1)  # n + 1 bounds of n blocks

    def loss(step: Step, separate: bool) -> dict[str, Term]:
        old = step.classes.old if separate else 0  # Eq. 7; without old classes it is Eq. 4
        terms = {"ce": mean(losses.separated_cross_entropy(step.output.logits, step.labels, old))}
        if step.teachers:
            terms["kd"] = mean(distillation(step) * (temperature**2 if kd_tau_sq else 1.0))
        return terms  # L_SS-IL, Sec. 5: their sum, each a mean over the whole batch

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


# The ablations: Sec. 6.3 (CE, CE-SS, CE+TKD) and Sec. 6.4 (CE+GKD, which is Eq. 5, and CE+TKD). Of each: the options
# that can be given, what the authors' code sets (profile "official"), and the defaults that differ from `ssil`.
BATCHES = ("batches", "replay_batch")
KD = (*BATCHES, "temperature", "kd_tau_sq")
TAU_SQ = {"kd_tau_sq": True}
MIXED = {"batches": "mixed"}
CE = "CE: one softmax and no distillation (an ablation of SS-IL, ICCV 2021, Fig. 6)."
CE_SS = "CE-SS: separated softmax without distillation (an ablation of SS-IL, ICCV 2021, Fig. 6)."
CE_TKD = "CE+TKD: one softmax, task-wise distillation (SS-IL, ICCV 2021, section 3 and Fig. 8)."
CE_GKD = "CE+GKD: one softmax, distillation over all old classes at once (SS-IL, ICCV 2021, section 3 and Fig. 8)."
AS_SSIL = "\n\nIts options are among those of `ssil`, which describes them."

register_variant(ssil, "ce", CE + AS_SSIL, BATCHES, MIXED, softmax="joint", distil="none")
register_variant(ssil, "ce_ss", CE_SS + AS_SSIL, (*BATCHES, "min_group"), MIXED, distil="none")
register_variant(ssil, "ce_tkd", CE_TKD + AS_SSIL, (*KD, "tkd_reduction"), TAU_SQ, softmax="joint", batches="mixed")
register_variant(ssil, "ce_gkd", CE_GKD + AS_SSIL, KD, TAU_SQ, softmax="joint", distil="gkd", batches="mixed")
