"""WA: Maintaining Discrimination and Fairness in Class Incremental Learning (Zhao et al., CVPR 2020)."""

from dataclasses import replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from ssil.core.classes import ClassTable
from ssil.learning import losses
from ssil.learning.batches import Mixed
from ssil.learning.method import Method, Phase, Stage, StepPosition, TaskPlan, Temperature, Term, mean
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.learning.snapshot import MAIN, Scorer, Step, TaskState
from ssil.learning.stages import alignment, reset_head
from ssil.nn.heads import LinearHead
from ssil.nn.network import Output


def distillation_loss(step: Step, temperature: float) -> dict[str, Term]:
    """The first phase (Fig. 3), for discrimination: (1 - lambda) CE + lambda GKD, lambda = old classes / all classes.

    The teacher's aligned scores are distilled; in the folded variant its weights are aligned.
    """
    # `new` is at least 1: a task of more images of old classes alone would else not learn from its labels.
    old, new = step.classes.old, max(step.classes.new, 1)
    share = old / (old + new)  # lambda; 0 in the first task
    terms = {"ce": mean((1 - share) * losses.cross_entropy(step.output.logits, step.labels))}
    if step.teachers:  # not multiplied by temperature**2
        terms["kd"] = mean(share * losses.gkd(step.output.logits, step.teachers["old"].scores, temperature))
    return terms


class Aligned(Scorer):
    """The original variant: the logits of the newest task's classes times gamma, computed at each task's end."""

    gamma: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("gamma", torch.ones(()))

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        """The logits, those of the newest task's classes times gamma."""
        old, new = output.logits.split([classes.old, classes.new], 1)
        return torch.cat([old, self.gamma * new], 1)


@torch.no_grad()
def clip(state: TaskState, _: StepPosition | None = None) -> None:
    """Weight clipping: set negative weights of the head to zero, so that norms reflect the logits."""
    state.network.head.weight.clamp_(min=0)


# The schedule of the authors' code: SS-IL's paper gives no settings for WA.
@register(paper={"milestones": (30, 60, 80, 90), "batch": 256, "weight_decay_by_task": True})
def wa(
    training: Training,
    *,
    variant: Literal["folded", "original"] = "folded",
    temperature: Temperature = 2.0,
    norm: Literal["l1", "l2"] | None = None,
    clamp: bool | None = None,
    weight_clipping: bool = True,
    weight_decay_by_task: bool = False,
) -> Method:
    """WA: Maintaining Discrimination and Fairness (Zhao et al., CVPR 2020): new rows get the mean norm of old ones.

    After each task but the first, gamma = mean norm of old rows / mean norm of new rows of the head rescales the new
    classes, whose rows have grown longer. After a short training old rows may be the longer ones: without `clamp`
    gamma then exceeds 1 and raises the new classes.

    Args:
        variant: "folded", as the paper is mostly read: multiply the new rows by gamma (biases stay), and train on
            from there. "original", as the authors' code does: a head without biases, the newest task's scores times
            gamma, and a head initialised anew for every task.
        temperature: The temperature of distillation.
        norm: The norm of rows: "l2" by default, "l1" in the original variant.
        clamp: Limit gamma to at most 1; by default in the original variant only.
        weight_clipping: Keep the head's weights non-negative after every step, as the authors' code does.
        weight_decay_by_task: Divide weight decay by the task's number, as the authors' code does. True in every
            profile.
    """
    folded = variant == "folded"
    order = {"l1": 1, "l2": 2}[norm or ("l2" if folded else "l1")]
    most = 1.0 if clamp or (clamp is None and not folded) else torch.inf
    clipped = (Stage("clip", clip),) if weight_clipping else ()
    loss = partial(distillation_loss, temperature=temperature)

    def gamma(state: TaskState) -> Tensor:  # the second phase (Fig. 3), for fairness
        weight = state.network.head.weight
        return alignment(weight, state.classes.old, order).clamp(max=most) if state.classes.new else weight.new_ones(())

    @torch.no_grad()
    def multiply_rows(state: TaskState) -> None:
        state.network.head.weight[state.classes.old :] *= gamma(state)

    def store_gamma(state: TaskState) -> None:
        state.scorers[MAIN].restore({"gamma": gamma(state).detach()})

    def plan(classes: ClassTable) -> TaskPlan:
        schedule, teachers = training.schedule(classes.task), ("old",) if classes.old else ()
        if weight_decay_by_task:
            schedule = replace(schedule, weight_decay=schedule.weight_decay / classes.task)
        main = Phase("main", loss, Mixed(training.batch), schedule, teachers, project=clip if weight_clipping else None)
        if not classes.old:
            return *clipped, main
        reset = () if folded else (Stage("reset", reset_head),)
        return *reset, *clipped, main, Stage("align", multiply_rows if folded else store_gamma)

    head = partial(LinearHead, bias=folded, init=training.new_head_init)
    return Method(plan, head, {MAIN: Scorer if folded else Aligned})
