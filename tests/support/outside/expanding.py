"""DER (Yan et al., CVPR 2021) as somebody outside the package writes it: nothing but `ssil` and torch."""

import torch

from ssil import (
    ClassTable,
    LinearHead,
    Method,
    Mixed,
    Phase,
    Stage,
    Step,
    TaskState,
    Term,
    Training,
    losses,
    mean,
    register,
)


def expand(state: TaskState) -> None:
    """Add a backbone, and a head on it alone, over the new classes and one class for all old ones."""
    state.network.add_branch(state.random.at("branch"))
    state.network.add_auxiliary_head(state.classes.new + 1, state.random.at("auxiliary"))


@torch.no_grad()
def align(state: TaskState) -> None:
    """Drop the auxiliary head, and give new rows the mean norm of old ones."""
    state.network.auxiliary = None
    weight, old = state.network.head.weight, state.classes.old
    norms = weight.norm(dim=1)
    if state.classes.new:
        weight[old:] *= norms[:old].mean() / norms[old:].mean()


def loss(step: Step) -> dict[str, Term]:
    """Cross-entropy over all classes, and of the auxiliary head."""
    terms = {"ce": mean(losses.cross_entropy(step.output.logits, step.labels))}
    if step.output.auxiliary is not None:
        places = (step.labels - step.classes.old + 1).clamp(min=0)
        terms["auxiliary"] = mean(losses.cross_entropy(step.output.auxiliary, places))
    return terms


@register()
def expanding(training: Training) -> Method:
    """DER: a further backbone for each task (Yan et al., CVPR 2021)."""

    def plan(classes: ClassTable) -> tuple[Phase | Stage, ...]:
        schedule = training.schedule(classes.task)
        main = Phase("main", loss, Mixed(training.batch), schedule, frozen=("backbone.old",))
        return (Stage("expand", expand), main, Stage("align", align)) if classes.old else (main,)

    return Method(plan, head=LinearHead, branches="backbone")
