"""LUCIR: Learning a Unified Classifier Incrementally via Rebalancing (Hou et al., CVPR 2019)."""

from math import sqrt

from ssil.core.classes import ClassTable
from ssil.learning import losses
from ssil.learning.batches import Mixed
from ssil.learning.method import Count, Method, Parts, Phase, Stage, Term, mean
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.learning.snapshot import Step
from ssil.learning.stages import imprint, keep_old_rows
from ssil.nn.heads import CosineHead


@register(paper={"epochs": 90, "milestones": (30, 60)}, official={"ranking_moves_scale": True})
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

    A cosine head with a learnt scale; features are held in the old model's direction, with the weight `less_forget` *
    sqrt(old / new classes); an exemplar's own class must lead the `top` best new ones by `margin`. New rows start at
    the class means of the training images (SS-IL's released code took test images there), old rows stand still. No
    balanced fine-tuning, as in SS-IL's comparison. With `ranking_moves_scale` the margin term reaches the scale too,
    as in the released code. `min_group` is a departure: with fewer new classes than that, the weight on
    features is at most 1; the full one often keeps such classes from being learnt at all.
    """

    def loss(step: Step) -> dict[str, Term]:
        output, classes, head = step.output, step.classes, step.head
        terms = {"ce": mean(losses.cross_entropy(output.logits, step.labels))}
        if step.teachers:
            assert isinstance(head, CosineHead)
            drift = losses.cosine_distance(output.features, step.teachers["old"].output.features)
            weight = less_forget * sqrt(classes.old / max(classes.new, 1))
            weight = weight if classes.new >= min_group else min(weight, 1.0)
            terms["less_forget"] = mean(weight * drift)
            leaky = output.logits / head.scale.detach()
            cosines = leaky if ranking_moves_scale else head.cosines(output.features)
            terms["ranking"] = mean(losses.margin_ranking(cosines, step.labels, classes.old, margin, top))
        return terms

    def plan(classes: ClassTable) -> Parts:
        schedule, batches = training.schedule(classes.task), Mixed(training.batch)
        if not classes.old:
            return (Phase("main", loss, batches, schedule),)
        main = Phase("main", loss, batches, schedule, teachers=("old",), project=keep_old_rows)
        return Stage("imprint", imprint), main

    return Method(plan, head=CosineHead, final_relu=False)
