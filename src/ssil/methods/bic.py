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
from ssil.learning.method import Count, Method, Momentum, Phase, Rate, Stage, TaskPlan, Temperature, Term, Weight, mean
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.learning.snapshot import MAIN, Scorer, Step, TaskState
from ssil.learning.training_subsets import all_but, hold_out_in_total, hold_out_per_class
from ssil.nn.heads import LinearHead
from ssil.nn.network import Output


def distillation_loss(step: Step, temperature: float) -> dict[str, Term]:
    """The loss of stage 1 (Sec. 3): (1 - lambda) CE + lambda GKD, with lambda = n / (n + m)."""
    # A departure: m is at least 1, since a task that only brings images of old classes would else have no CE term.
    n, m = step.classes.old, max(step.classes.new, 1)
    share = n / (n + m)  # lambda; 0 in the first task
    terms = {"ce": mean((1 - share) * losses.cross_entropy(step.output.logits, step.labels))}
    if step.teachers:
        # Eq. 1, not multiplied by temperature**2. The teacher's scores are corrected, the student's logits are not.
        # So corrections are never applied on top of each other: an earlier one acts through the teacher alone.
        terms["kd"] = mean(share * losses.gkd(step.output.logits, step.teachers["old"].scores, temperature))
    return terms


class Correction(Scorer):
    """Eq. 4: the logits z of the newest task's classes become alpha z + beta; all others stay."""

    def __init__(self) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(()))
        self.beta = nn.Parameter(torch.zeros(()))

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        """The corrected logits."""
        old, new = output.logits.split([classes.old, classes.new], 1)
        return torch.cat([old, self.alpha * new + self.beta], 1)


def reset_correction(state: TaskState) -> None:
    """Set alpha = 1 and beta = 0 at the start of a task; the teacher keeps its own correction."""
    state.scorers[MAIN].restore(Correction().state_dict())


def bias_loss(step: Step, beta_penalty: float) -> dict[str, Term]:
    """The loss of stage 2 (Eq. 5): cross-entropy of the corrected scores."""
    terms = {"ce": mean(losses.cross_entropy(step.scores, step.labels))}
    if beta_penalty:  # not in the paper: BiC's own code adds 0.1 * beta**2 / 2
        assert isinstance(step.scorer, Correction)
        terms["penalty"] = mean(beta_penalty * step.scorer.beta.square().view(1) / 2)
    return terms


@register(
    paper={"milestones": (30, 60, 90), "batch": 256},  # SS-IL, Table S1
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
    beta_penalty: Weight = 0.0,
) -> Method:
    """BiC: Large Scale Incremental Learning (Wu et al., CVPR 2019): two numbers correct the newest task's scores.

    Stage 1 trains the network by cross-entropy and distillation on all images but a hold-out set. Stage 2, in each
    task but the first, fits alpha and beta to the hold-out set. A memory of 5 exemplars per class loses a fifth of
    them to the hold-out set, one of 2 a half; with 1 nothing is held out and nothing corrected.

    With SS-IL's settings for stage 2 (the defaults), beta moves by less than 0.07 in 200 epochs if the hold-out set
    fits in one batch. Those of BiC's own code are `bias_lr` 0.1, `bias_momentum` 0.9, `beta_penalty` 0.1.

    Departures: held-out images are not augmented, so that their features are computed only once; incomplete batches
    of them are used, since SS-IL's code, which drops them, may correct nothing; batch norm is in eval mode in stage 2;
    the learning rate falls at the start of a milestone's epoch, as in all methods here, not at its end. The milestones
    and the weight decay by task of BiC's own code are left out.

    Args:
        temperature: The T of distillation.
        validation: The hold-out set. "per_class": the same number of images of every class, from the second task on.
            "original", as BiC's own code: in the first task too, so that images held out later were never trained
            on (if exemplars are chosen at random). "official", as SS-IL's code: a share of the memory, and the same
            number of images of the new classes together.
        held_share: The share held out: with "official" of the memory, otherwise of the smallest class, at least one
            image of each class that has two.
        bias_epochs: The epochs of stage 2; by default twice those of stage 1.
        bias_lr: The learning rate of stage 2.
        bias_momentum: The momentum of stage 2.
        beta_penalty: The weight of beta**2 / 2 in the loss of stage 2.
    """
    held_out = partial(hold_out_in_total if validation == "official" else hold_out_per_class, share=held_share)
    trained_on = all_but(held_out)
    tuning = training.tuning(200, of=100, lr=bias_lr, milestones=(60, 120, 180), wanted=bias_epochs)  # SS-IL, Table S1
    bias = Phase(  # stage 2
        "bias",
        loss=partial(bias_loss, beta_penalty=beta_penalty),
        batches=Mixed(training.batch, drop_last=False),
        schedule=replace(tuning, momentum=bias_momentum, weight_decay=0.0),
        images=held_out,  # Fig. 2; a 9 : 1 split by Sec. 6.1
        trained="scorer",
    )

    def plan(classes: ClassTable) -> TaskPlan:
        main = Phase(  # stage 1
            "main",
            loss=partial(distillation_loss, temperature=temperature),
            batches=Mixed(training.batch),
            schedule=training.schedule(classes.task),
            teachers=("old",) if classes.old else (),
            images=trained_on if classes.old or validation == "original" else None,
        )
        return (Stage("forget", reset_correction), main, bias) if classes.old else (main,)

    return Method(plan, head=partial(LinearHead, init=training.new_head_init), scorers={MAIN: Correction})
