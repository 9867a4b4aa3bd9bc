"""Plain cross-entropy on new images and exemplars: experience replay (ER), the joint upper bound."""

from functools import partial
from typing import Literal

from ssil.batches import Batches, Mixed, Replay
from ssil.method import Count, Method, Phase, cross_entropy
from ssil.nn import LinearHead
from ssil.registry import register
from ssil.schedule import Training
from ssil.types import Classes


def _method(
    training: Training, batches: Batches, start: Literal["current", "fresh"], memory: Literal["budget", "all"]
) -> Method:
    def plan(classes: Classes) -> tuple[Phase, ...]:
        return (Phase("main", cross_entropy, batches, training.schedule(classes.task), start=start),)

    return Method(plan, head=partial(LinearHead, init=training.new_head_init), memory=memory)


@register()
def er(training: Training, *, replay_batch: Count | None = None) -> Method:
    """ER: experience replay, exemplars in every batch (Chaudhry et al., 2019; here over many epochs)."""
    return _method(training, Replay(training.batch, replay_batch or training.replay), "current", "budget")


@register(official={"new_head_init": "default"})
def joint(training: Training, *, start: Literal["fresh", "current"] = "fresh") -> Method:
    """Joint: a fresh model on all data of all classes seen, after every task (the upper bound).

    `start="current"` goes on with the model of the task before: fewer epochs will do.
    """
    return _method(training, Mixed(training.batch), start, "all")
