"""FOSTER: Feature Boosting and Compression for Class-Incremental Learning (Wang et al., ECCV 2022)."""

from dataclasses import replace
from functools import partial
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from ssil.core.classes import ClassTable
from ssil.learning import losses
from ssil.learning.batches import Mixed
from ssil.learning.expansion import OLD, add_branch
from ssil.learning.method import Count, Method, Phase, Stage, TaskPlan, Temperature, Term, Weight, cross_entropy, mean
from ssil.learning.registry import register
from ssil.learning.schedule import Schedule, Training
from ssil.learning.snapshot import Step, TaskState
from ssil.nn.heads import LinearHead

Decay = Annotated[float, Field(ge=0, lt=1)]


@register()
def foster(
    training: Training,
    *,
    temperature: Temperature = 2.0,
    distillation: Weight = 1.0,
    boosting_beta: Decay = 0.96,
    compression_beta: Decay = 0.97,
    compression_start: Literal["previous", "fresh"] = "previous",
    compression_epochs: Count | None = None,
) -> Method:
    """FOSTER: Feature Boosting and Compression (Wang et al., ECCV 2022): two backbones in training, one afterwards.

    Boosting: a copy of the previous backbone is trained beside it, with the head on the features of both; the
    previous one stays as it is. Compression: one backbone learns from the pair, whose probabilities are weighed in
    favour of classes with few images.

    The learning rate is annealed by cosine in all phases, whatever milestones are given.

    Departures: distillation is KL divergence, which differs from the authors' cross-entropy by a constant.

    Args:
        temperature: The temperature of both distillations.
        distillation: The weight of distillation from the previous model in boosting.
        boosting_beta: Beta of the effective numbers of images by which boosting aligns logits.
        compression_beta: Beta of those by which compression weighs the pair's probabilities.
        compression_start: What the one backbone starts from: the "previous" model, as the authors' code does, or a
            "fresh" one.
        compression_epochs: The epochs of compression; by default 3/4 of the main phase's (the authors have 130 of
            170). There is no weight decay in them, as in the authors' code.
    """

    def boosting(step: Step) -> dict[str, Term]:
        """Cross-entropy of aligned logits, cross-entropy of the new features alone, distillation of old classes."""
        logits, labels, old = step.output.logits, step.labels, step.teachers["old"].output.logits
        assert step.output.auxiliary is not None
        aligned = logits / class_weights(step.counts, boosting_beta).to(logits)
        return {
            "ce": mean(losses.cross_entropy(aligned, labels)),
            "features": mean(losses.cross_entropy(step.output.auxiliary, labels)),
            "kd": mean(distillation * losses.gkd(logits, old, temperature)),
        }

    def compression(step: Step) -> dict[str, Term]:
        """Balanced distillation of the pair."""
        pair, weights = step.teachers["pair"].output.logits, class_weights(step.counts, compression_beta)
        return {"kd": mean(losses.balanced_kd(step.output.logits, pair, weights.to(pair), temperature))}

    def plan(classes: ClassTable) -> TaskPlan:
        batches, schedule = Mixed(training.batch), training.schedule(classes.task).annealed()
        if not classes.old:
            return (Phase("main", cross_entropy, batches, schedule),)
        boost = Phase("main", boosting, batches, schedule, ("old",), frozen=(OLD,), keep_as="pair")
        shorter = _shorter(schedule, compression_epochs)
        compress = Phase("compression", compression, batches, shorter, ("pair",), start=compression_start)
        return Stage("expand", _expand), boost, compress

    return Method(plan, head=partial(LinearHead, init=training.new_head_init), branches="backbone")


def class_weights(counts: Tensor, beta: float) -> Tensor:
    """Return the weight of each class: (1 - beta) / (1 - beta^n) for n images, divided by its mean over all classes.

    1 - beta^n over 1 - beta is the effective number of images (Cui et al., CVPR 2019). A class without images counts
    as if it had one.

    >>> class_weights(torch.tensor([1, 2]), beta=0.5)
    tensor([1.2000, 0.8000], dtype=torch.float64)
    """
    weights = (1 - beta) / (1 - torch.pow(beta, counts.clamp(min=1).double()))
    return weights / weights.mean()


def _expand(state: TaskState) -> None:
    add_branch(state)
    state.network.add_auxiliary_head(state.classes.seen, state.random.at("auxiliary"))


def _shorter(schedule: Schedule, wanted: int | None) -> Schedule:
    """Return the schedule of compression: as the main phase's, with fewer epochs and no weight decay."""
    return replace(schedule, epochs=wanted or max(1, round(schedule.epochs * 3 / 4)), weight_decay=0.0).annealed()
