"""iCaRL: Incremental Classifier and Representation Learning (Rebuffi et al., CVPR 2017)."""

from functools import partial
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from ssil.core.classes import ClassTable
from ssil.core.randomness import Randomness
from ssil.learning import losses
from ssil.learning.batches import Mixed
from ssil.learning.memory import by_class, random_selection
from ssil.learning.method import Method, Phase, Temperature, Term, cross_entropy, mean
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.learning.snapshot import MAIN, Scorer, Step, TaskState
from ssil.learning.stages import updated_rows
from ssil.nn.heads import LinearHead
from ssil.nn.network import Output


class NearestMean(Scorer):
    """iCaRL's classifier (Alg. 1): minus the squared distance of the normalised feature to each class mean.

    Args:
        new_classes: Take the mean of a new class over "all" its images, or over "exemplars": as many as the largest
            old class has, since the memory is updated only later, chosen as a random memory does; in the first task
            over all.
        unit_means: Bring means to length 1, as the paper does with the result of any operation on features.
    """

    per_class = ("means",)
    means: Tensor

    def __init__(self, new_classes: Literal["all", "exemplars"] = "all", unit_means: bool = True) -> None:
        super().__init__()
        self.new_classes, self.unit_means = new_classes, unit_means
        self.register_buffer("means", torch.empty(0))

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        """-||phi(x) - mean||^2 for each class."""
        features = F.normalize(output.features)
        squares = features.square().sum(1, keepdim=True) + self.means.square().sum(1)
        return 2 * features @ self.means.T - squares

    @torch.no_grad()
    def fit(self, state: TaskState) -> None:
        """Compute the mean of every class under the current network, under the test transform."""
        images = self._images(state)
        features = F.normalize(state.features(torch.cat([*images.values()]))).split([*map(len, images.values())])
        means = {label: group.mean(0) for label, group in zip(images, features, strict=True)}
        if self.unit_means:
            means = {label: F.normalize(mean, dim=0) for label, mean in means.items()}
        self.means = updated_rows(self.means, means)

    def _images(self, state: TaskState) -> dict[int, Tensor]:
        """The images of each class over which its mean is taken."""
        groups = by_class(state.pool.all, state.pool.labels)
        if self.new_classes == "all" or not state.classes.old:
            return groups
        select = random_selection(Randomness(state.random.seed))
        budget = int(state.pool.labels[state.pool.old].bincount().max())
        return {
            label: group if label < state.classes.old else select(label, group, budget)
            for label, group in groups.items()
        }


@register(
    paper={"epochs": 60, "milestones": (20, 30, 40, 50), "decay": 0.2},  # SS-IL, Table S1
    official={"kd_tau_sq": True, "nme_unit_means": False},
)
def icarl(
    training: Training,
    *,
    loss: Literal["softmax", "bce"] = "softmax",
    distillation: Literal["tkd", "gkd"] = "tkd",
    temperature: Temperature = 2.0,
    kd_tau_sq: bool = False,
    nme_new_classes: Literal["all", "exemplars"] = "all",
    nme_unit_means: bool = True,
) -> Method:
    """iCaRL: incremental classifier and representation learning (Rebuffi et al., CVPR 2017): nearest class mean.

    An image is assigned to the class with the nearest mean feature; the mean of an old class is that of its
    exemplars. The predictions of the network's own head are the extra record `cnn`. As in SS-IL's comparison, the
    network learns by one softmax and task-wise distillation (TKD), and exemplars are random; the original herds
    them (--selection herding).

    Departures: means are taken under the test transform (SS-IL's authors augment) and without the mirrored images
    over which the original averages too.

    Args:
        loss: "softmax" with distillation, or "bce", the original's: a sigmoid for each output, with the teacher's
            outputs as targets for old classes. It needs a learning rate of 2 (--lr 2 --weight-decay 1e-5).
        distillation: With the loss "softmax": task by task ("tkd"), or over all old classes at once ("gkd"), as PyCIL
            does and the protocols of published tables do.
        temperature: The tau of distillation.
        kd_tau_sq: Multiply distillation by temperature**2, as SS-IL's authors' code does.
        nme_new_classes: Take the mean of a new class over "all" its images, or over as many random ones as an old
            class has "exemplars".
        nme_unit_means: Bring means to length 1, as in the original; SS-IL's authors do not.
    """

    def softmax(step: Step) -> dict[str, Term]:
        """The loss of SS-IL's comparison (supplement): multi-class cross-entropy in both terms."""
        terms = cross_entropy(step)
        if step.teachers:
            student, teacher = step.output.logits, step.teachers["old"].output.logits
            bounds = step.classes.old_blocks() if distillation == "tkd" else (0, step.classes.old)
            values = losses.tkd(student, teacher, bounds, temperature)  # SS-IL, Eq. 3; of a single block Eq. 2
            terms["kd"] = mean(values * (temperature**2 if kd_tau_sq else 1.0))
        return terms

    def bce(step: Step) -> dict[str, Term]:
        """The original's loss (Alg. 3), as a mean over the outputs, not a sum, as in the authors' code."""
        targets = F.one_hot(step.labels, step.classes.seen).to(step.output.logits)
        if step.teachers:
            targets[:, : step.classes.old] = step.teachers["old"].output.logits.sigmoid()
        values = F.binary_cross_entropy_with_logits(step.output.logits, targets, reduction="none")
        return {"bce": mean(values.mean(1))}

    def plan(classes: ClassTable) -> tuple[Phase, ...]:
        teachers = ("old",) if classes.old else ()
        chosen = {"softmax": softmax, "bce": bce}[loss]
        return (Phase("main", chosen, Mixed(training.batch), training.schedule(classes.task), teachers),)

    head = partial(LinearHead, init=training.new_head_init)
    return Method(plan, head, scorers={MAIN: partial(NearestMean, nme_new_classes, nme_unit_means), "cnn": Scorer})
