"""BiC: Large Scale Incremental Learning (Wu et al., CVPR 2019), bias correction."""

from dataclasses import replace
from functools import partial
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from ssil.core.classes import ClassTable
from ssil.learning import losses
from ssil.learning.batches import Mixed
from ssil.learning.image_selection import in_total, per_class, without
from ssil.learning.method import Count, Method, Momentum, Parts, Phase, Rate, Stage, Temperature, Term, mean
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.learning.snapshot import MAIN, Scorer, Step, Work
from ssil.learning.stages import weighed_by_classes
from ssil.nn.heads import LinearHead
from ssil.nn.network import Output


class Correction(Scorer):
    """The logits z of the newest task's classes become alpha z + beta; all others stay."""

    def __init__(self) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(()))
        self.beta = nn.Parameter(torch.zeros(()))

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        """The corrected logits."""
        old, new = output.logits.split([classes.old, classes.new], 1)
        return torch.cat([old, self.alpha * new + self.beta], 1)


def forget(work: Work) -> None:
    """Back to no correction: the last one lives on in what the teacher distils."""
    work.scorers[MAIN].restore(Correction().state_dict())


def bias_loss(step: Step, beta_penalty: float) -> dict[str, Term]:
    """Cross-entropy of the corrected scores, and a penalty on the shift."""
    terms = {"ce": mean(losses.cross_entropy(step.scores, step.labels))}
    if beta_penalty:
        assert isinstance(step.scorer, Correction)
        terms["penalty"] = mean(beta_penalty * step.scorer.beta.square().view(1) / 2)
    return terms


@register(
    paper={"milestones": (30, 60, 90), "batch": 256},
    official={"validation": "official"},
    quick={"bias_epochs": 200, "bias_lr": 0.1, "bias_momentum": 0.9, "beta_penalty": 0.1},
)
def bic(
    training: Training,
    *,
    temperature: Temperature = 2.0,
    validation: Literal["per_class", "original", "official"] = "per_class",
    held_share: Annotated[float, Field(gt=0, le=0.5)] = 0.1,
    bias_epochs: Count | None = None,
    bias_lr: Rate = 0.001,
    bias_momentum: Momentum = 0.0,
    beta_penalty: Annotated[float, Field(ge=0)] = 0.0,
) -> Method:
    """BiC: Large Scale Incremental Learning (Wu et al., CVPR 2019): two numbers correct the newest task's scores.

    After each task but the first, alpha and beta are fitted to images that the task did not train on: equally many of
    every class, `held_share` of the smallest and at least one. A memory of 5 exemplars a class loses a fifth to it,
    one of 2 a half; with 1 nothing is held out and nothing corrected. The first task trains on all its images; with
    `validation` "original" it holds some out too, so that a random memory's held-out images were never trained on.
    "official" holds out a share of the memory in total, and as many images of all new classes together.

    `bias_epochs` are twice the main phase's if not given. If all held-out images fit in one batch, SS-IL's settings
    move beta by less than 0.07 in 200 epochs; the original's are `bias_lr` 0.1, `bias_momentum` 0.9, `beta_penalty`
    0.1. Corrections are never stacked: the teacher's scores carry its own.

    Departures: held-out images are not augmented, incomplete batches of them count (SS-IL's released code drops
    them, and may so correct nothing), batch norms stand still, and the rate falls before a milestone's epoch, not
    after it. The original's milestones and its weight decay by task are left out.
    """
    held = partial(in_total if validation == "official" else per_class, share=held_share)
    rest = without(held)
    tuning = training.tuning(200, of=100, lr=bias_lr, milestones=(60, 120, 180), wanted=bias_epochs)
    bias = Phase(
        "bias",
        loss=partial(bias_loss, beta_penalty=beta_penalty),
        batches=Mixed(training.batch, drop_last=False),
        schedule=replace(tuning, momentum=bias_momentum, weight_decay=0.0),
        images=held,
        trained="scorer",
    )

    def plan(classes: ClassTable) -> Parts:
        main = Phase(
            "main",
            loss=weighed_by_classes(temperature),
            batches=Mixed(training.batch),
            schedule=training.schedule(classes.task),
            teachers=("old",) if classes.old else (),
            images=rest if classes.old or validation == "original" else None,
        )
        return (Stage("forget", forget), main, bias) if classes.old else (main,)

    return Method(plan, head=partial(LinearHead, init=training.new_head_init), scorers={MAIN: Correction})
