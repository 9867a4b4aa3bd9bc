"""WA: Maintaining Discrimination and Fairness in Class Incremental Learning (Zhao et al., CVPR 2020)."""

from dataclasses import replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from ssil.core.classes import ClassTable
from ssil.learning.batches import Mixed
from ssil.learning.method import Method, Moment, Parts, Phase, Stage, Temperature
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.learning.snapshot import MAIN, Scorer, Work
from ssil.learning.stages import alignment, reset_head, weighed_by_classes
from ssil.nn.heads import LinearHead
from ssil.nn.network import Output


class Aligned(Scorer):
    """The logits of the newest task's classes times gamma, which each task's end measures anew."""

    gamma: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("gamma", torch.ones(()))

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        """The aligned logits."""
        old, new = output.logits.split([classes.old, classes.new], 1)
        return torch.cat([old, self.gamma * new], 1)


@torch.no_grad()
def clip(work: Work, _: Moment | None = None) -> None:
    """Cut the head's weights at zero."""
    work.network.head.weight.clamp_(min=0)


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

    "folded", as the paper is mostly read, multiplies the new rows of the head by gamma = mean norm of old rows / mean
    norm of new rows after each task but the first; biases stay. "original", as its authors' code does, has a head
    without biases, multiplies the newest task's scores by gamma, at most 1 (`clamp`) and of L1 norms (`norm`), and
    starts each task with a head drawn anew. After a short training old rows may be the longer ones: without `clamp`
    gamma then exceeds 1 and raises the new classes. `weight_clipping` cuts the head's weights at zero after every
    step, and `weight_decay_by_task` divides weight decay by the task's number, both as the authors' code does.
    SS-IL's paper gives no settings for WA: the schedule is that of the authors' code.
    """
    folded = variant == "folded"
    order = {"l1": 1, "l2": 2}[norm or ("l2" if folded else "l1")]
    most = 1.0 if clamp or (clamp is None and not folded) else torch.inf
    clipped = (Stage("clip", clip),) if weight_clipping else ()
    loss = weighed_by_classes(temperature)

    def gamma(work: Work) -> Tensor:
        weight = work.network.head.weight
        return alignment(weight, work.classes.old, order).clamp(max=most) if work.classes.new else weight.new_ones(())

    @torch.no_grad()
    def fold(work: Work) -> None:
        work.network.head.weight[work.classes.old :] *= gamma(work)

    def remember(work: Work) -> None:
        work.scorers[MAIN].restore({"gamma": gamma(work).detach()})

    def plan(classes: ClassTable) -> Parts:
        schedule, teachers = training.schedule(classes.task), ("old",) if classes.old else ()
        if weight_decay_by_task:
            schedule = replace(schedule, weight_decay=schedule.weight_decay / classes.task)
        main = Phase("main", loss, Mixed(training.batch), schedule, teachers, project=clip if weight_clipping else None)
        if not classes.old:
            return *clipped, main
        reset = () if folded else (Stage("reset", reset_head),)
        return *reset, *clipped, main, Stage("align", fold if folded else remember)

    head = partial(LinearHead, bias=folded, init=training.new_head_init)
    return Method(plan, head, {MAIN: Scorer if folded else Aligned})
