"""A method with an optimiser a phase, and a part of the network at a rate of its own: nothing but `ssil`."""

from dataclasses import replace

from ssil import ClassTable, LinearHead, Method, Mixed, Phase, Training, cross_entropy, register


@register()
def two_optimizers(training: Training, *, head_lr: float = 0.003) -> Method:
    """Two optimisers: the network by SGD, its backbone at half the rate, then the head by AdamW."""

    def plan(classes: ClassTable) -> tuple[Phase, ...]:
        batches, schedule = Mixed(training.batch), training.schedule(classes.task)
        head = replace(training.tuning(1, of=2, lr=head_lr), optimizer="adamw")
        return (
            Phase("main", cross_entropy, batches, schedule, rates={"backbone": 0.5}),
            Phase("head", cross_entropy, batches, head, trained="head"),
        )

    return Method(plan, head=LinearHead)
