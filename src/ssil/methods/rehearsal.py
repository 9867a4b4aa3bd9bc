"""Plain cross-entropy on new images and exemplars: experience replay (ER), the joint upper bound."""

from functools import partial
from typing import Literal

from ssil.core.classes import ClassTable
from ssil.learning.batches import Batches, Mixed, Replay
from ssil.learning.method import Count, Method, Phase, cross_entropy
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.nn.heads import LinearHead


def _method(
    training: Training, batches: Batches, start: Literal["current", "fresh"], memory: Literal["budget", "all"]
) -> Method:
    def plan(classes: ClassTable) -> tuple[Phase, ...]:
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
