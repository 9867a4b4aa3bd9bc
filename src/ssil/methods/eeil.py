"""EEIL: End-to-End Incremental Learning (Castro et al., ECCV 2018)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import torch

from ssil.core.classes import ClassTable
from ssil.learning import losses, training_subsets
from ssil.learning.batches import Mixed
from ssil.learning.method import Count, Hook, Method, Phase, Rate, StepPosition, Temperature, Term, mean
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.learning.snapshot import Step, TaskState
from ssil.nn.heads import LinearHead


@register(
    paper={"epochs": 40, "milestones": (10, 20, 30)},  # SS-IL, Table S1
    official={"kd_tau_sq": True},
    quick={"balanced_epochs": 30},
)
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

    The main phase trains on new images and exemplars. Balanced fine-tuning, in each task but the first, tunes all
    weights on as many images of each class as the smallest class has, with the model just trained as the teacher.

    Departures: consecutive old tasks of one class share a block of distillation, for a softmax over one class gives
    no signal. The original's offline augmentation is left out, and fine-tuning augments as the main phase does.

    Args:
        temperature: The T of distillation.
        kd_tau_sq: Multiply distillation by temperature**2, as SS-IL's authors' code does; the original does not.
        balanced_epochs: The epochs of balanced fine-tuning; by default 3/4 of the main phase's.
        balanced_lr: The first learning rate of balanced fine-tuning.
        balanced_distil: What fine-tuning distils: the "new" task's block, as SS-IL's authors do, or "all" blocks, as
            the original does.
        grad_noise: Add the original's Gaussian noise to the gradients.
        legacy_blocks: Repeat an error of SS-IL's authors' code, which cuts the blocks of distillation at multiples of
            the current task's size. After a large first task most of its classes are then not distilled; the printed
            large-base results are probably lower for it.
    """

    def loss(step: Step, blocks: Sequence[int]) -> dict[str, Term]:
        # Eq. 1, the cross-distilled loss: cross-entropy over all classes, and one distillation per block.
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
        balanced = Phase(  # Sec. 4, balanced fine-tuning
            "balanced",
            partial(loss, blocks=tuned),
            batches,
            training.tuning(30, of=40, lr=balanced_lr, milestones=(10, 20), wanted=balanced_epochs),  # SS-IL, Table S1
            teachers=("before_tuning",),
            images=training_subsets.balanced,
            gradients=noise(schedule.epochs),
        )
        return (replace(main, teachers=("old",), keep_as="before_tuning"), balanced)

    return Method(plan, head=partial(LinearHead, init=training.new_head_init))


def _multiples(classes: ClassTable) -> tuple[int, ...]:
    """Bounds of blocks as large as the current task, one per old task, cut at the last old class."""
    return tuple(sorted({min(number * classes.new, classes.old) for number in range(classes.task)}))


def _add_noise(state: TaskState, moment: StepPosition, epochs_before: int) -> None:
    """Add Gaussian noise that decays with the epochs of a task, which count from 1 and on through fine-tuning."""
    epoch = epochs_before + moment.epoch + 1
    deviation = 0.3 / (1 + epoch) ** 0.55 / moment.images  # eta, gamma as in the paper, the batch as in its code
    generator = state.random.at("noise", moment.epoch, moment.step)
    for parameter in state.network.parameters():
        if parameter.grad is not None:
            parameter.grad += deviation * torch.randn(parameter.shape, generator=generator).to(parameter.grad)
