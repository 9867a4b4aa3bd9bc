"""PODNet: Pooled Outputs Distillation for Small-Tasks Incremental Learning (Douillard et al., ECCV 2020)."""

from dataclasses import replace
from functools import partial
from math import sqrt
from typing import Literal

from ssil.core.classes import ClassTable
from ssil.learning import losses
from ssil.learning.batches import Mixed
from ssil.learning.method import Count, Method, Moment, Momentum, Parts, Phase, Rate, Stage, Term, mean
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.learning.snapshot import Step, Work
from ssil.learning.stages import balanced, imprint_proxies, keep_old_rows
from ssil.nn.heads import ProxyHead


@register(
    paper={"epochs": 90, "lr": 0.05, "milestones": (), "batch": 64},
    official={"scheduled": False, "pooling": "separate", "flat": 20.0, "reset_scale": True, "balanced_momentum": 0.0},
    quick={"balanced_epochs": 20},
)
def podnet(
    training: Training,
    *,
    proxies: Count = 10,
    nca: Literal["code", "paper"] = "code",
    margin: float = 0.6,
    spatial: float = 8.0,
    flat: float = 10.0,
    scheduled: bool = True,
    pooling: Literal["joint", "separate"] = "joint",
    reset_scale: bool = False,
    annealing: Literal["cosine", "steps"] = "cosine",
    clamp: Rate | None = None,
    balanced_epochs: Count | None = None,
    balanced_lr: Rate = 0.01,
    balanced_momentum: Momentum = 0.9,
) -> Method:
    """PODNet: Pooled Outputs Distillation for Small-Tasks Incremental Learning (Douillard et al., ECCV 2020).

    A class has several `proxies`, which start at k-means centres of its training images and stand still once old.
    Every stage's pooled map and the features are held near the old model's, with a weight that grows with the number
    of classes if `scheduled`. Then the proxies alone are tuned on equally many images of each class. In `nca` "code"
    the `margin` cancels, as in both released codes; "paper" takes it from the target alone and cuts the loss at zero.
    With `annealing` by cosine, milestones and all rates but the first are not used. `official` is what SS-IL's
    released code does: no growing weights, two norms in POD-spatial, a doubled POD-flat (hence 20), a new scale for
    each task. The original clamps gradients (`clamp` 5).

    Departures: batch norms stand still while proxies are tuned, and k-means sees images without augmentation. The
    original's colour jitter and its own backbone are left out.
    """

    def similarity(step: Step) -> Term:
        head, scores = step.head, step.output.logits
        assert isinstance(head, ProxyHead)
        if nca == "paper":
            return mean(losses.nca_hinged(scores, step.labels, head.scale, margin))
        return mean(losses.nca(head.scale * scores, step.labels))

    def loss(step: Step) -> dict[str, Term]:
        terms = {"nca": similarity(step)}
        if step.teachers:
            mine, theirs = step.output, step.teachers["old"].output
            growth = sqrt(step.classes.seen / max(step.classes.new, 1)) if scheduled else 1.0
            drift = losses.pod_spatial(mine.stages, theirs.stages, separate=pooling == "separate")
            terms["pod_spatial"] = mean(spatial * growth * drift.to(mine.logits.device))
            terms["pod_flat"] = mean(flat * growth * losses.cosine_distance(mine.features, theirs.features))
        return terms

    def clamped(work: Work, _: Moment) -> None:
        for parameter in work.network.parameters():
            if parameter.grad is not None and clamp:
                parameter.grad.clamp_(-clamp, clamp)

    def prepared(work: Work) -> None:
        imprint_proxies(work)
        if reset_scale:
            work.network.head.get_parameter("scale").data.fill_(1)

    def hold_scale(work: Work, moment: Moment) -> None:
        clamped(work, moment)
        work.network.head.get_parameter("scale").grad = None  # SGD then leaves it alone

    def plan(classes: ClassTable) -> Parts:
        schedule, batches = training.schedule(classes.task), Mixed(training.batch)
        schedule = schedule.annealed() if annealing == "cosine" else schedule
        main = Phase("main", loss, batches, schedule, gradients=clamped)
        if not classes.old:
            return (main,)
        tuning = training.tuning(20, of=90, lr=balanced_lr, wanted=balanced_epochs)
        tuned = Phase(
            "balanced",
            lambda step: {"nca": similarity(step)},
            batches,
            replace(tuning, momentum=balanced_momentum),
            images=balanced,
            trained="head",
            gradients=hold_scale,
        )
        return Stage("imprint", prepared), replace(main, teachers=("old",), project=keep_old_rows), tuned

    return Method(plan, head=partial(ProxyHead, proxies=proxies), final_relu=False)
