"""EEIL: End-to-End Incremental Learning (Castro et al., ECCV 2018)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import torch

from ssil.core.classes import ClassTable
from ssil.learning import losses, stages
from ssil.learning.batches import Mixed
from ssil.learning.method import Count, Hook, Method, Moment, Phase, Rate, Temperature, Term, mean
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.learning.snapshot import Step, Work
from ssil.nn.heads import LinearHead


@register(paper={"epochs": 40, "milestones": (10, 20, 30)}, official={"kd_tau_sq": True}, quick={"balanced_epochs": 30})
def eeil(
    training: Training,
    *,
    temperature: Temperature = 2.0,
    kd_tau_sq: bool = False,
    balanced_epochs: Count | None = None,
    balanced_lr: Rate = 0.01,
    balanced_distil: Literal["new", "all"] = "new",
    grad_noise: bool = False,
    legacy_blocks: bool = False,
) -> Method:
    """EEIL: End-to-End Incremental Learning (Castro et al., ECCV 2018): CE+TKD, then tuning on a balanced set.

    The balanced set has as many images of each class as the smallest class. All weights are tuned, with the model
    just trained as the teacher of the new block ("new", as SS-IL's authors do) or of all blocks ("all", the
    original). `balanced_epochs` are 3/4 of the main phase's unless given. `grad_noise` adds the original's Gaussian
    noise to gradients, `kd_tau_sq` weighs distillation by temperature**2. `legacy_blocks` repeats a slip of the SS-IL
    authors' code, which cuts TKD's blocks at multiples of the current task's size: after a large first task most of
    its classes are not distilled. The printed large-base results probably suffer from it.

    Departures: consecutive old tasks of one class share a block, as in SS-IL. The original's offline augmentation is
    left out, and tuning augments as the main phase does.
    """

    def loss(step: Step, blocks: Sequence[int]) -> dict[str, Term]:
        terms = {"ce": mean(losses.cross_entropy(step.output.logits, step.labels))}
        inner, bounds = slice(blocks[0], blocks[-1]), [bound - blocks[0] for bound in blocks]
        for teacher in step.teachers.values():
            student, target = step.output.logits[:, inner], teacher.output.logits[:, inner]
            values = losses.tkd(student, target, bounds, temperature)
            terms["kd"] = mean(values * (temperature**2 if kd_tau_sq else 1.0))
        return terms

    def noise(epochs_before: int) -> Hook | None:
        return partial(_add_noise, epochs_before=epochs_before) if grad_noise else None

    def plan(classes: ClassTable) -> tuple[Phase, ...]:
        batches, schedule, blocks = Mixed(training.batch), training.schedule(classes.task), classes.old_blocks(2)
        distilled = _multiples(classes) if legacy_blocks else blocks
        main = Phase("main", partial(loss, blocks=distilled), batches, schedule, gradients=noise(0))
        if not classes.old:
            return (main,)
        tuned = (*blocks, classes.seen) if balanced_distil == "all" else (classes.old, classes.seen)
        balanced = Phase(
            "balanced",
            partial(loss, blocks=tuned),
            batches,
            training.tuning(30, of=40, lr=balanced_lr, milestones=(10, 20), wanted=balanced_epochs),
            teachers=("before_tuning",),
            images=stages.balanced,
            gradients=noise(schedule.epochs),
        )
        return (replace(main, teachers=("old",), keep_as="before_tuning"), balanced)

    return Method(plan, head=partial(LinearHead, init=training.new_head_init))


def _multiples(classes: ClassTable) -> tuple[int, ...]:
    """Blocks as large as the current task, one for each old task, as far as there are old classes."""
    return tuple(sorted({min(number * classes.new, classes.old) for number in range(classes.task)}))


def _add_noise(work: Work, moment: Moment, epochs_before: int) -> None:
    """Noise that fades with the epochs of a task, counted from 1 and on through the tuning."""
    epoch = epochs_before + moment.epoch + 1
    deviation = 0.3 / (1 + epoch) ** 0.55 / moment.images
    generator = work.random.at("noise", moment.epoch, moment.step)
    for parameter in work.network.parameters():
        if parameter.grad is not None:
            parameter.grad += deviation * torch.randn(parameter.shape, generator=generator).to(parameter.grad)
