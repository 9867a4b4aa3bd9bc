"""Scorers that learn at a task's end: nearest class means, rectified scores, rescaled weights."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from ssil.core.classes import ClassTable
from ssil.core.randomness import Randomness
from ssil.learning.memory import by_class, random_selection
from ssil.learning.snapshot import Scorer, Work
from ssil.nn.network import Output

EPS = 1e-12


class NearestMean(Scorer):
    """iCaRL's classifier (Rebuffi et al., CVPR 2017): minus the squared distance of the unit feature to a class's mean.

    A mean is of unit features under the test transform, of all images that there are of a class, brought to length 1 if
    `unit_means`.
    With "exemplars", a new class has no more of them than the largest old class: how many it will keep is not known
    before the memory is brought up to date. They are those that a random memory keeps; in the first task, all.
    """

    per_class = ("means",)
    means: Tensor

    def __init__(self, new_classes: Literal["all", "exemplars"] = "all", unit_means: bool = True) -> None:
        super().__init__()
        self.new_classes, self.unit_means = new_classes, unit_means
        self.register_buffer("means", torch.empty(0))

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        """-||phi(x) - mean||^2."""
        features = F.normalize(output.features)
        squares = features.square().sum(1, keepdim=True) + self.means.square().sum(1)
        return 2 * features @ self.means.T - squares

    @torch.no_grad()
    def fit(self, work: Work) -> None:
        """The mean of every class under the network as it is now."""
        images = self._images(work)
        means = {label: F.normalize(work.features(group)).mean(0) for label, group in images.items()}
        if self.unit_means:
            means = {label: F.normalize(mean, dim=0) for label, mean in means.items()}
        self.means = _rows(self.means, means)

    def _images(self, work: Work) -> dict[int, Tensor]:
        groups = by_class(work.pool.all, work.pool.labels)
        if self.new_classes == "all" or not work.classes.old:
            return groups
        select = random_selection(Randomness(work.random.seed))
        budget = int(work.pool.labels[work.pool.old].bincount().max())
        return {
            label: group if label < work.classes.old else select(label, group, budget)
            for label, group in groups.items()
        }


class Rectified(Scorer):
    """IL2M's second memory (Belouadah & Popescu, ICCV 2019): old classes regain the confidence they once had.

    Where the network sees a new class, the chance of an old class c of task s is multiplied by
    init_c / cur_c * conf_t / conf_s: its mean chance on its own images when it was new and now, and the mean of the
    best chance on the images of the current task and of task s.
    """

    per_class = ("initial", "current")
    initial: Tensor
    current: Tensor
    confidence: Tensor

    def __init__(self) -> None:
        super().__init__()
        for name in ("initial", "current", "confidence"):
            self.register_buffer(name, torch.empty(0))

    def values(self, logits: Tensor) -> Tensor:
        """What is rectified: the softmax."""
        return logits.softmax(1)

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        """The values, rectified where the best of them is a new class's; not normalised."""
        values = self.values(output.logits)
        confidence = self.confidence[-1] / _nonzero(self.confidence)[classes.task_of()]
        factors = self.initial / _nonzero(self.current) * confidence
        factors[classes.old :] = 1.0
        sees_new = values.argmax(1, keepdim=True) >= classes.old
        return torch.where(sees_new, values * factors, values)

    def probabilities(self, scores: Tensor) -> Tensor:
        """The rectified chances, normalised."""
        return scores / scores.sum(1, keepdim=True)

    @torch.no_grad()
    def fit(self, work: Work) -> None:
        """The means over the task's images and the exemplars, under the test transform."""
        labels = work.pool.labels[work.pool.all]
        own, best = self._look(work, labels)
        means = {label: own[rows].mean() for label, rows in by_class(torch.arange(len(labels)), labels).items()}
        self.current = _rows(self.current, means)
        self.initial = torch.cat([self.initial, self.current[work.classes.old :]])
        self.confidence = torch.cat([self.confidence, best[: len(work.pool.new)].mean().view(1)])

    def _look(self, work: Work, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Of each image, the value of its own class and the best value; the values of all would take much room."""
        own, best = list[Tensor](), list[Tensor]()
        for images, of_class in zip(work.pool.all.split(512), labels.split(512), strict=True):
            values = self.values(work.outputs(images).logits)
            own.append(values[torch.arange(len(values)), of_class])
            best.append(values.amax(1))
        return torch.cat(own), torch.cat(best)


class RectifiedLogits(Rectified):
    """IL2M on raw logits, as its authors' code has it: a negative logit grows more negative."""

    def values(self, logits: Tensor) -> Tensor:
        """What is rectified: the logits."""
        return logits

    def probabilities(self, scores: Tensor) -> Tensor:
        """Their softmax."""
        return scores.softmax(1)


class Rescaled(Scorer):
    """ScaIL (Belouadah & Popescu, WACV 2020): the weights with which an old class was first learnt, in today's size.

    Weights are brought to the mean magnitudes of the classes new in the current task, rank by rank. Only the `top`
    old classes that the network itself scores best may be answered; the others score -inf.
    """

    per_class = ("initial_weight", "initial_bias", "weight", "bias")
    initial_weight: Tensor
    initial_bias: Tensor
    weight: Tensor
    bias: Tensor

    def __init__(self, top: int | None = 10) -> None:
        super().__init__()
        self.top = top
        for name in ("initial_weight", "initial_bias", "weight", "bias"):
            self.register_buffer(name, torch.empty(0))

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        """Features times rescaled weights."""
        scores = F.linear(output.features, self.weight, self.bias)
        if self.top is None or classes.old <= self.top:
            return scores
        best = output.logits[:, : classes.old].topk(self.top).indices
        ruled_out = torch.ones_like(scores, dtype=torch.bool).scatter(1, best, False)
        ruled_out[:, classes.old :] = False
        return scores.masked_fill(ruled_out, -torch.inf)

    @torch.no_grad()
    def fit(self, work: Work) -> None:
        """Keep the new classes' rows of the head, and rescale those of old classes as they once were."""
        head, old = work.network.head, work.classes.old
        self.initial_weight = torch.cat([self.initial_weight, head.weight[old:]])
        self.initial_bias = torch.cat([self.initial_bias, head.get_parameter("bias")[old:]])
        self.weight = _rescaled(self.initial_weight, work.classes)
        self.bias = _rescaled(self.initial_bias.unsqueeze(1), work.classes).squeeze(1)


def _rescaled(initial: Tensor, classes: ClassTable) -> Tensor:
    """Old tasks' rows in the size of the newest ones: each entry by the ratio of mean magnitudes at its rank."""
    *before, now = (initial[start:end] for start, end in pairwise(classes.bounds) if end > start)
    return torch.cat([*(rows * _ranked(_sizes(now) / _nonzero(_sizes(rows)), rows) for rows in before), now])


def _sizes(rows: Tensor) -> Tensor:
    """For each rank r (d,): the mean over the rows of their r-th largest magnitude."""
    return rows.abs().sort(1, descending=True).values.mean(0)


def _ranked(values: Tensor, rows: Tensor) -> Tensor:
    """For each entry of the rows (n, d): the value (d,) of its rank by magnitude within its row."""
    order = rows.abs().argsort(dim=1, descending=True, stable=True)
    return values[order.argsort(1)]


def _rows(before: Tensor, found: Mapping[int, Tensor]) -> Tensor:
    """What was found of each class, or, of a class without images, what was known before."""
    return torch.stack([row for _, row in sorted((dict(enumerate(before)) | dict(found)).items())])


def _nonzero(values: Tensor) -> Tensor:
    """The values, as divisors."""
    return values.where(values.abs() > EPS, EPS)
