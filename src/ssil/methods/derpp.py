"""DER++: dark experience replay, with labels too (Buzzega et al., NeurIPS 2020)."""

from functools import partial

from torch import Tensor

from ssil.core.classes import ClassTable
from ssil.learning import losses
from ssil.learning.batches import Replay
from ssil.learning.method import Count, Method, Phase, StoredValues, Term, Weight, mean
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.learning.snapshot import Step, TaskState
from ssil.nn.heads import LinearHead

LOGITS = "logits"


def logits_now(state: TaskState, indices: Tensor) -> dict[str, Tensor]:
    """Return the logits of images that become exemplars, over the classes seen so far."""
    return {LOGITS: state.outputs(indices).logits}


@register()
def derpp(training: Training, *, alpha: Weight = 0.1, beta: Weight = 0.5, replay_batch: Count | None = None) -> Method:
    """DER++: replay that keeps each exemplar's logits at the time of storing (Buzzega et al., NeurIPS 2020).

    The loss (Eq. 6) is the cross-entropy of new images, plus alpha times the squared difference between an exemplar's
    logits and the stored ones, plus beta times the exemplars' cross-entropy.

    Departures. The original learns from a stream of batches: an image enters a reservoir with the logits of the step
    that saw it, so stored logits are from the whole course of training. Here a task is learnt over many epochs, its
    exemplars are chosen at its end, and their logits are those of the model at that time, without augmentation. They
    are compared over the classes that existed then; the original head has all classes from the start. The original
    draws a batch of exemplars for each of the two terms; here both are means over the exemplars of one batch, which
    has the same expectation.

    Args:
        alpha: The weight of the stored logits; the paper has 0.1 to 0.5.
        beta: The weight of the exemplars' labels; the paper has 0.5 and 1.
        replay_batch: Exemplars in a batch; by default as many as SS-IL has.
    """

    def loss(step: Step) -> dict[str, Term]:
        values, old = losses.cross_entropy(step.output.logits, step.labels), step.exemplars
        terms = {"ce": mean(values[~old]), "replay": mean(beta * values[old])}
        if LOGITS in step.stored:
            distances = losses.logit_distance(step.output.logits, step.stored[LOGITS])
            terms[LOGITS] = mean(alpha * distances[old])
        return terms

    def plan(classes: ClassTable) -> tuple[Phase, ...]:
        batches = Replay(training.batch, replay_batch or training.replay)
        return (Phase("main", loss, batches, training.schedule(classes.task)),)

    stored = StoredValues(logits_now, per_class=(LOGITS,))
    return Method(plan, head=partial(LinearHead, init=training.new_head_init), stored=stored)
