"""ER-ACE: experience replay with asymmetric cross-entropy (Caccia et al., ICLR 2022)."""

from functools import partial

from ssil.core.classes import ClassTable
from ssil.learning import losses
from ssil.learning.batches import Replay
from ssil.learning.method import Count, Method, Phase, Term, mean
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.learning.snapshot import Step
from ssil.learning.training_subsets import replaying_new_classes
from ssil.nn.heads import LinearHead


@register()
def er_ace(training: Training, *, replay_batch: Count | None = None, min_group: int = 2) -> Method:
    """ER-ACE: replay, new images' softmax over new classes only (Caccia et al., ICLR 2022; here over many epochs).

    Replayed images have a softmax over all classes seen, so that new images do not push old classes down. SS-IL's
    separated softmax also restricts exemplars, to old classes. The loss is the sum of the means over new images and
    over replayed ones.

    Replayed images are exemplars, and of each new class as many of the task's images as an old class has exemplars: in
    the original too, the memory (a reservoir) holds images of the current task. Without these, nothing would raise
    the scores of new classes above those of old ones, and no image would be taken for a new class.

    Departures: the original learns online, with a replay batch as large as the batch of new images, and restricts new
    images to the classes that its batch holds; here they are those of the task. Further images of a known class have
    the softmax over all classes too.

    Args:
        replay_batch: Replayed images in a batch; by default as many as SS-IL has.
        min_group: A departure. Fewer new classes than this share one softmax with all others, since a softmax over
            a single class gives no signal.
    """

    def loss(step: Step) -> dict[str, Term]:
        logits, replayed = step.output.logits, step.replayed
        restricted = step.classes.old if step.classes.new >= min_group else 0
        new = losses.asymmetric_cross_entropy(logits[~replayed], step.labels[~replayed], restricted)
        return {"ce": mean(new), "replay": mean(losses.cross_entropy(logits[replayed], step.labels[replayed]))}

    def plan(classes: ClassTable) -> tuple[Phase, ...]:
        batches = Replay(training.batch, replay_batch or training.replay)
        images = replaying_new_classes if classes.old else None
        return (Phase("main", loss, batches, training.schedule(classes.task), images=images),)

    return Method(plan, head=partial(LinearHead, init=training.new_head_init))
