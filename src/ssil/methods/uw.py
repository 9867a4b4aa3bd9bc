"""UW: Overcoming Catastrophic Forgetting with Unlabeled Data in the Wild (Lee et al., ICCV 2019), without any."""

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from ssil.core.classes import ClassTable
from ssil.learning import losses, stages
from ssil.learning.batches import Mixed
from ssil.learning.method import Count, Method, Momentum, Phase, Rate, Temperature, Term, Weight, mean
from ssil.learning.registry import register
from ssil.learning.schedule import Schedule, Training
from ssil.learning.snapshot import Step
from ssil.nn.heads import LinearHead


@register(official={"tuning_momentum": 0.0}, quick={"tuning_epochs": 20})
def uw(
    training: Training,
    *,
    temperature: Temperature = 2.0,
    kd_tau_sq: bool = True,
    use_teacher_c: bool = True,
    confidence: Weight = 1.0,
    tuning_epochs: Count | None = None,
    tuning_lr: Rate = 0.01,
    tuning_momentum: Momentum = 0.9,
) -> Method:
    """UW: Overcoming Catastrophic Forgetting with Unlabeled Data in the Wild (Lee et al., ICCV 2019), without any.

    A later task has three phases. Teacher C learns the new classes alone and to be unsure about exemplars. The main
    phase starts from the old model again and distils the old classes from it and the new ones from C. Then the head
    alone is tuned by the same loss, in which every class has the same total weight. The first task and C have all the
    epochs, the main phase 4/5 of them. There is no unlabelled data, hence no third teacher and no sampling.

    Departures: batch norm is in eval mode while the head is tuned, so that the features stay as they are; a task of
    one class has no C, for a softmax over one class teaches nothing.

    Args:
        temperature: The temperature of distillation.
        kd_tau_sq: Multiply distillation by temperature**2, as the original does.
        use_teacher_c: Train teacher C; without it CE+GKD and the tuning are left.
        confidence: The weight of the loss that makes C unsure about exemplars.
        tuning_epochs: The epochs of the tuning; by default 1/5 of all.
        tuning_lr: The first learning rate of the tuning.
        tuning_momentum: The momentum of the tuning; SS-IL's authors' code has none.
    """

    def loss_of_c(step: Step) -> dict[str, Term]:
        """Cross-entropy over the new classes for new images, and the confidence loss for exemplars."""
        is_new, logits = step.labels >= step.classes.old, step.output.logits[:, step.classes.old :]
        own = losses.cross_entropy(logits[is_new], step.labels[is_new] - step.classes.old)
        # KL(uniform || softmax). SS-IL's authors leave out its constant, log of the number of new classes.
        unsure = losses.gkd(logits[~is_new], torch.zeros_like(logits[~is_new]), temperature=1.0)
        return {"ce": mean(own), "confidence": mean(unsure * confidence)}

    def loss(step: Step, balanced: bool) -> dict[str, Term]:
        """Cross-entropy, and distillation from each teacher over its classes, weighed by their share of all classes."""
        classes, logits = step.classes, step.output.logits

        def term(values: Tensor, first: int, last: int) -> Term:
            return mean(values * _weights(step.counts, first, last)[step.labels].to(values) if balanced else values)

        terms = {"ce": term(losses.cross_entropy(logits, step.labels), 0, classes.seen)}
        ranges = {"old": (0, classes.old), "c": (classes.old, classes.seen)}
        for name, teacher in step.teachers.items():
            first, last = ranges[name]
            share = (last - first) / classes.seen if use_teacher_c else 1.0
            values = losses.gkd(logits[:, first:last], teacher.output.logits[:, first:last], temperature)
            terms[f"kd_{name}"] = term(values * share * (temperature**2 if kd_tau_sq else 1.0), first, last)
        return terms

    def plan(classes: ClassTable) -> tuple[Phase, ...]:
        whole = training.schedule(classes.task)
        main = Phase("main", partial(loss, balanced=False), Mixed(training.batch), whole)
        if not classes.old:
            return (main,)
        with_c = use_teacher_c and classes.new > 1
        # Teacher C: the old model, of which the backbone and the new rows are trained.
        c = replace(main, name="teacher_c", loss=loss_of_c, start="previous", keep_as="c", project=stages.keep_old_rows)
        teachers = ("old", "c") if with_c else ("old",)
        main = replace(main, schedule=_main_part(whole), teachers=teachers, start="previous")
        tuning = training.tuning(20, of=100, lr=tuning_lr, milestones=(10, 15), wanted=tuning_epochs)
        balanced = Phase(  # balanced fine-tuning by loss weights, on all images
            "balanced",
            partial(loss, balanced=True),
            Mixed(training.batch),
            replace(tuning, momentum=tuning_momentum),
            teachers,
            trained="head",
        )
        return (c, main, balanced) if with_c else (main, balanced)

    return Method(plan, head=partial(LinearHead, init=training.new_head_init))


def _weights(counts: Tensor, first: int, last: int) -> Tensor:
    """The weight of each class: N / (C n_c) within a range of C classes with N images, n_c of class c; 1 outside.

    Each class of the range has the same total weight, and the mean weight over its images is 1.
    """
    weights, within = torch.ones_like(counts, dtype=torch.float64), counts[first:last].double()
    weights[first:last] = within.sum() / (len(within) * within)
    return weights


def _main_part(whole: Schedule) -> Schedule:
    """The main phase's schedule: 80 of 100 epochs, the last milestone half as much earlier (70 for 80), but reached.

    The original has 180 of 200 epochs, with milestones 120, 160 and 170.
    """
    epochs = max(1, round(0.8 * whole.epochs))
    earlier = (whole.epochs - epochs) // 2
    *before, last = whole.milestones or (0,)
    moved = max(1, *before, min(last - earlier, epochs - 1))
    return replace(whole, epochs=epochs, milestones=(*before, moved) if last else ())
