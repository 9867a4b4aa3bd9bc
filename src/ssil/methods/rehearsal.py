"""Plain cross-entropy on new images and exemplars: fine-tuning (FT), experience replay (ER), the joint upper bound."""

from functools import partial
from typing import Literal

from ssil import losses
from ssil.batches import Batches, Mixed, Replay
from ssil.method import Count, Method, Phase, Term, mean
from ssil.nn import LinearHead
from ssil.registry import register
from ssil.schedule import Training
from ssil.snapshot import Step
from ssil.types import Classes


def cross_entropy(step: Step) -> dict[str, Term]:
    """One softmax over all classes seen."""
    return {"ce": mean(losses.cross_entropy(step.output.logits, step.labels))}


def _method(
    training: Training,
    batches: Batches,
    start: Literal["current", "fresh"] = "current",
    memory: Literal["budget", "all"] = "budget",
) -> Method:
    def plan(classes: Classes) -> tuple[Phase, ...]:
        return (Phase("main", cross_entropy, batches, training.schedule(classes.task), start=start),)

    return Method(plan, head=partial(LinearHead, init=training.new_head_init), memory=memory)


@register(paper={"later_epochs": 25}, official={"lr_by_task": True})
def ft(training: Training) -> Method:
    """FT: fine-tuning on new images and exemplars (baseline of IL2M, Belouadah & Popescu, ICCV 2019)."""
    return _method(training, Mixed(training.batch))


@register()
def er(training: Training, *, replay_batch: Count | None = None) -> Method:
    """ER: experience replay, exemplars in every batch (Chaudhry et al., 2019; here over many epochs)."""
    return _method(training, Replay(training.batch, replay_batch or training.replay))


@register()
def joint(training: Training) -> Method:
    """Joint: a fresh model on all data of all classes seen, after every task (the upper bound)."""
    return _method(training, Mixed(training.batch), start="fresh", memory="all")
