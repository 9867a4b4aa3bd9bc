"""DER++ (Buzzega et al., NeurIPS 2020) as somebody outside the package writes it: nothing but `ssil` and torch."""

import torch
from torch import Tensor

from ssil import (
    ClassTable,
    LinearHead,
    Method,
    Phase,
    Replay,
    Step,
    StoredValues,
    TaskState,
    Term,
    Training,
    losses,
    mean,
    register,
)


def logits(state: TaskState, indices: Tensor) -> dict[str, Tensor]:
    """The logits of images that become exemplars."""
    return {"logits": state.outputs(indices).logits}


@register()
def dark_replay(training: Training, *, alpha: float = 0.1, beta: float = 0.5) -> Method:
    """DER++: replay with the logits of the time of storing (Buzzega et al., NeurIPS 2020)."""

    def loss(step: Step) -> dict[str, Term]:
        values = losses.cross_entropy(step.output.logits, step.labels)
        terms = {"ce": mean(values[~step.exemplars]), "replay": mean(beta * values[step.exemplars])}
        if "logits" in step.stored:
            then = step.stored["logits"][step.exemplars]
            now = step.output.logits[step.exemplars, : then.shape[1]]
            differences = torch.where(then.isnan(), 0.0, now - then)
            terms["logits"] = mean(alpha * differences.square().mean(1))
        return terms

    def plan(classes: ClassTable) -> tuple[Phase, ...]:
        return (Phase("main", loss, Replay(training.batch, training.replay), training.schedule(classes.task)),)

    return Method(plan, head=LinearHead, stored=StoredValues(logits, per_class=("logits",)))
