"""PODNet: Pooled Outputs Distillation for Small-Tasks Incremental Learning (Douillard et al., ECCV 2020)."""

from dataclasses import replace
from functools import partial
from math import sqrt
from typing import Literal

import torch

from ssil.core.classes import ClassTable
from ssil.learning import losses
from ssil.learning.batches import Mixed
from ssil.learning.method import Count, Method, Momentum, Phase, Rate, Stage, StepPosition, TaskPlan, Term, mean
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.learning.snapshot import Step, TaskState
from ssil.learning.stages import k_means_centres, keep_old_rows, unit_features
from ssil.learning.training_subsets import balanced
from ssil.nn.heads import ProxyHead


@torch.no_grad()
def imprint_proxies(state: TaskState) -> None:
    """Start a new class's proxies at the k-means centres of its features, with the mean length of old proxies."""
    weight, old = state.network.head.weight, state.classes.old
    length = weight[:old].norm(dim=2).mean()
    for label, group in state.pool.of_new_classes(old).items():
        seed = state.random.at("centres", label).initial_seed() % 2**32
        weight[label] = length * k_means_centres(unit_features(state, group), weight.shape[1], seed)


@register(
    paper={"epochs": 90, "lr": 0.05, "milestones": (), "batch": 64},  # SS-IL, Table S1
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

    A class has several proxies (LSC), which start at the k-means centres of its training images and are not trained
    once the class is old. POD-spatial and POD-flat keep every stage's pooled map and the features near the old
    model's. Balanced fine-tuning, in each task but the first, trains all proxies on equally many images of each
    class. The profile `official` is what SS-IL's authors' code does: constant weights, two norms in POD-spatial, a
    doubled POD-flat (hence 20), a new scale for each task.

    Departures: batch norm is in eval mode while proxies are tuned, so that the features stay as they are. k-means
    sees images without augmentation, as in the original but not in SS-IL's code. The original's colour jitter and its
    own backbone are left out, so that all methods share one.

    Args:
        proxies: Proxies per class.
        nca: The classification loss. "code", as in both authors' codes, where the margin cancels; "paper", where it
            is subtracted from the target alone and the loss is cut at zero.
        margin: The margin of the "paper" loss.
        spatial: lambda_c, the weight of POD-spatial.
        flat: lambda_f, the weight of POD-flat.
        scheduled: Multiply both weights by sqrt(all classes / new classes), as the original does.
        pooling: In POD-spatial, normalise both pooled maps together ("joint"), or each for itself ("separate").
        reset_scale: Start each task with a scale of 1.
        annealing: "cosine", where milestones and all learning rates but the first are not used, or "steps".
        clamp: Limit gradients to this magnitude; the original's is 5.
        balanced_epochs: The epochs of balanced fine-tuning; by default 2/9 of the main phase's.
        balanced_lr: The learning rate of balanced fine-tuning.
        balanced_momentum: The momentum of balanced fine-tuning.
    """

    def nca_loss(step: Step) -> dict[str, Term]:
        """The classification loss of the local similarity classifier (LSC)."""
        head, scores = step.head, step.output.logits
        assert isinstance(head, ProxyHead)
        if nca == "paper":
            return {"nca": mean(losses.nca_hinged(scores, step.labels, head.scale, margin))}
        return {"nca": mean(losses.nca(head.scale * scores, step.labels))}

    def loss(step: Step) -> dict[str, Term]:
        """The NCA loss, and the distillation of the paper's "POD-final": POD-spatial and POD-flat."""
        terms = nca_loss(step)
        if step.teachers:
            mine, theirs = step.output, step.teachers["old"].output
            growth = sqrt(step.classes.seen / max(step.classes.new, 1)) if scheduled else 1.0  # SS-IL's code: 1
            drift = losses.pod_spatial(mine.stages, theirs.stages, separate=pooling == "separate")
            terms["pod_spatial"] = mean(spatial * growth * drift.to(mine.logits.device))
            terms["pod_flat"] = mean(flat * growth * losses.cosine_distance(mine.features, theirs.features))
        return terms

    def clamp_gradients(state: TaskState, _: StepPosition) -> None:
        if clamp:
            torch.nn.utils.clip_grad_value_(state.network.parameters(), clamp)

    def imprint(state: TaskState) -> None:
        imprint_proxies(state)
        if reset_scale:
            state.network.head.get_parameter("scale").data.fill_(1)

    def freeze_scale(state: TaskState, moment: StepPosition) -> None:
        clamp_gradients(state, moment)
        state.network.head.get_parameter("scale").grad = None  # SGD skips a parameter without a gradient

    def plan(classes: ClassTable) -> TaskPlan:
        schedule, batches = training.schedule(classes.task), Mixed(training.batch)
        schedule = schedule.annealed() if annealing == "cosine" else schedule
        main = Phase("main", loss, batches, schedule, gradients=clamp_gradients)
        if not classes.old:
            return (main,)
        main = replace(main, teachers=("old",), project=keep_old_rows)
        # Balanced fine-tuning of the proxies, for 20 of 90 epochs (SS-IL, Table S1).
        tuning = replace(training.tuning(20, of=90, lr=balanced_lr, wanted=balanced_epochs), momentum=balanced_momentum)
        tuned = Phase("balanced", nca_loss, batches, tuning, images=balanced, trained="head", gradients=freeze_scale)
        return Stage("imprint", imprint), main, tuned

    return Method(plan, head=partial(ProxyHead, proxies=proxies), final_relu=False)
