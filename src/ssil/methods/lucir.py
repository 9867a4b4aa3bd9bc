"""LUCIR: Learning a Unified Classifier Incrementally via Rebalancing (Hou et al., CVPR 2019)."""

from math import sqrt

import torch
from torch.nn import functional as F

from ssil.core.classes import ClassTable
from ssil.learning import losses
from ssil.learning.batches import Mixed
from ssil.learning.method import Count, Method, Phase, Stage, TaskPlan, Term, mean
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.learning.snapshot import Step, TaskState
from ssil.learning.stages import keep_old_rows, unit_features
from ssil.nn.heads import CosineHead


@torch.no_grad()
def imprint(state: TaskState) -> None:
    """Start new rows of the head at the mean directions of their classes, with the mean length of old rows.

    Not in the paper, but in its code. A departure from the code of SS-IL's authors, which takes test images here.
    """
    weight, old = state.network.head.weight, state.classes.old
    length = weight[:old].norm(dim=1).mean()
    for label, group in state.pool.of_new_classes(old).items():
        weight[label] = length * F.normalize(unit_features(state, group).mean(0), dim=0)


@register(paper={"epochs": 90, "milestones": (30, 60)}, official={"ranking_moves_scale": True})  # SS-IL, Table S1
def lucir(
    training: Training,
    *,
    less_forget: float = 10.0,
    margin: float = 0.5,
    top: Count = 2,
    ranking_moves_scale: bool = False,
    min_group: int = 2,
) -> Method:
    """LUCIR: Learning a Unified Classifier Incrementally via Rebalancing (Hou et al., CVPR 2019).

    A cosine head with a learnt scale; the less-forget constraint keeps features in the old model's direction; a
    margin ranking loss separates exemplars from new classes. New rows of the head start at the class means of the
    training images, old rows are not trained. No balanced fine-tuning, as in SS-IL's comparison.

    Args:
        less_forget: lambda_base, the weight of the less-forget constraint before it is multiplied by
            sqrt(old / new classes).
        margin: m, by which an exemplar's own class must lead the highest new ones.
        top: K, the number of new classes in the ranking loss.
        ranking_moves_scale: Let the ranking loss change the scale too, as SS-IL's authors' code does.
        min_group: A departure. With fewer new classes than this, the weight on features is at most 1: the full one
            often keeps such classes from being learnt at all.
    """

    def loss(step: Step) -> dict[str, Term]:
        """The integrated objective (Eq. 9)."""
        output, classes, head = step.output, step.classes, step.head
        terms = {"ce": mean(losses.cross_entropy(output.logits, step.labels))}  # Eq. 1, of the logits of Eq. 4
        if step.teachers:
            assert isinstance(head, CosineHead)
            drift = losses.cosine_distance(output.features, step.teachers["old"].output.features)  # Eq. 6
            weight = less_forget * sqrt(classes.old / max(classes.new, 1))  # Eq. 7; old over new as in its code
            weight = weight if classes.new >= min_group else min(weight, 1.0)
            terms["less_forget"] = mean(weight * drift)
            with_scale = output.logits / head.scale.detach()  # the cosines, but with a gradient to the scale
            cosines = with_scale if ranking_moves_scale else head.cosines(output.features)
            terms["ranking"] = mean(losses.margin_ranking(cosines, step.labels, classes.old, margin, top))  # Eq. 8
        return terms

    def plan(classes: ClassTable) -> TaskPlan:
        schedule, batches = training.schedule(classes.task), Mixed(training.batch)
        if not classes.old:
            return (Phase("main", loss, batches, schedule),)
        main = Phase("main", loss, batches, schedule, teachers=("old",), project=keep_old_rows)
        return Stage("imprint", imprint), main

    return Method(plan, head=CosineHead, final_relu=False)  # Sec. 4.1: no ReLU before the head
