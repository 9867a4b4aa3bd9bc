"""Plain cross-entropy on new and old images: ER (Chaudhry et al., 2019) and joint training, the upper bound."""

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
    """ER: experience replay, exemplars in every batch (Chaudhry et al., 2019; here over many epochs).

    The original learns online: each image is seen once, and a replay batch is as large as the batch of new images.

    Args:
        replay_batch: Exemplars in a batch; by default as many as SS-IL has.
    """
    return _method(training, Replay(training.batch, replay_batch or training.replay), "current", "budget")


# SS-IL's paper gives no settings for its upper bound (Fig. 5); these are SS-IL's.
@register(official={"new_head_init": "default"})
def joint(training: Training, *, start: Literal["fresh", "current"] = "fresh") -> Method:
    """Joint: a fresh model on all data of all classes seen, after every task (the upper bound).

    Args:
        start: "fresh", or "current" to train the model of the task before on, for which fewer epochs suffice.
    """
    return _method(training, Mixed(training.batch), start, "all")
