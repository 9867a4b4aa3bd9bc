"""ER-ACE: experience replay with asymmetric cross-entropy (Caccia et al., ICLR 2022)."""

from functools import partial

from ssil.core.classes import ClassTable
from ssil.learning import losses
from ssil.learning.batches import Replay
from ssil.learning.method import Count, Method, Phase, Term, mean
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.learning.snapshot import Step
from ssil.nn.heads import LinearHead


@register()
def er_ace(training: Training, *, replay_batch: Count | None = None, min_group: int = 2) -> Method:
    """ER-ACE: replay, new images' softmax over new classes only (Caccia et al., ICLR 2022; here over many epochs).

    Exemplars have a softmax over all classes seen, so that new images do not push old classes down. SS-IL's separated
    softmax also restricts exemplars, to old classes. The loss is the sum of the means over new images and over
    exemplars.

    Departures: the original learns online, with a replay batch as large as the batch of new images, and restricts new
    images to the classes that its batch holds; here they are those of the task. The label decides what counts as an
    exemplar, so further images of a known class have the softmax over all classes too.

    Args:
        replay_batch: Exemplars in a batch; by default as many as SS-IL has.
        min_group: A departure. Fewer new classes than this share one softmax with all others, since a softmax over
            a single class gives no signal.
    """

    def loss(step: Step) -> dict[str, Term]:
        old = step.classes.old
        restricted = old if step.classes.new >= min_group else 0
        values = losses.asymmetric_cross_entropy(step.output.logits, step.labels, restricted)
        replayed = step.labels < old
        return {"ce": mean(values[~replayed]), "replay": mean(values[replayed])}

    def plan(classes: ClassTable) -> tuple[Phase, ...]:
        batches = Replay(training.batch, replay_batch or training.replay)
        return (Phase("main", loss, batches, training.schedule(classes.task)),)

    return Method(plan, head=partial(LinearHead, init=training.new_head_init))
