"""The accuracy of a closed form by cross-validation: each learnt image is predicted by a model without images like it.

A closed form is fitted in a second, so that it can be fitted several times, each time without a tenth of the images it
has learnt; near-duplicates are left out together. This takes no image from training, and counts all of them, where a
hold-out set has a few of each class.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from ssil.classifier.near_duplicates import SHARE, class_groups, feature_vectors, threshold
from ssil.core.classes import ClassTable
from ssil.learning.feature_statistics import ClosedForm
from ssil.learning.memory import FixedBudget
from ssil.nn.network import Output

FOLDS = 10
"""Each learns nine tenths of the images, so that the accuracy is hardly lower than that of a model of all."""


@dataclass(frozen=True)
class ValidatedImages:
    """Learnt images without their pixels: their features, and what a model without images like them predicts."""

    features: Tensor
    """(N, width) in half precision"""
    labels: Tensor
    """(N,) their classes, in order of arrival"""
    groups: Tensor
    """(N,) images of one group are alike"""
    predicted: Tensor
    """(N,) the classes that they are taken for; -1 where that is not known"""
    confidence: Tensor
    """(N,) the probability of that class"""
    alike_above: float | None = None
    """The cosine by which the groups were found; None if that is not known"""

    @classmethod
    def of(cls, features: Tensor, labels: Tensor, predicted: Tensor) -> Self:
        """Return images that are not validated yet, with an earlier model's predictions."""
        number = torch.arange(len(labels))
        return cls(features.half(), labels, number, predicted, torch.zeros(len(labels)))

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: Tensor) -> Self:
        """Return some of the images."""
        taken: dict[str, Any] = {name: getattr(self, name)[rows] for name in PER_IMAGE}
        return replace(self, **taken)

    def joined(self, other: "ValidatedImages") -> Self:
        """Return these and other images."""
        pairs = ((name, getattr(self, name), getattr(other, name)) for name in PER_IMAGE)
        both: dict[str, Any] = {name: torch.cat([mine, theirs.to(mine)]) for name, mine, theirs in pairs}
        return replace(self, **both)

    def rows_at_most(self, total: int) -> Tensor:
        """Return the rows of no more than so many images, shared equally by the classes; those that arrived first."""
        sizes = torch.bincount(self.labels)
        quotas = FixedBudget(total).quotas(sizes.tolist())
        rows = [(self.labels == label).nonzero()[:quota, 0] for label, quota in enumerate(quotas)]
        return torch.cat([torch.arange(0), *rows]).sort().values

    def without_class(self, label: int) -> Self:
        """Return the images of the other classes; those that were taken for this class are taken for none."""
        rest = self.take((self.labels != label).nonzero()[:, 0])
        predicted = torch.where(rest.predicted == label, -1, rest.predicted - (rest.predicted > label).long())
        return replace(rest, labels=rest.labels - (rest.labels > label).long(), predicted=predicted)

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors by name, for `restore_validated`."""
        level = {} if self.alike_above is None else {THRESHOLD: torch.tensor(self.alike_above, dtype=torch.float64)}
        return {name: getattr(self, name).contiguous() for name in PER_IMAGE} | level


THRESHOLD = "alike_above"
PER_IMAGE = tuple(field.name for field in fields(ValidatedImages) if field.name != THRESHOLD)
"""The tensors of `ValidatedImages` with a row for each image."""


def restore_validated(tensors: Mapping[str, Tensor], classes: int) -> ValidatedImages:
    """Return what `ValidatedImages.tensors` gave.

    Raises:
        ValueError: The tensors don't fit each other, or the number of classes.
    """
    if {*PER_IMAGE} != {*tensors} - {THRESHOLD}:
        raise ValueError("tensors of cross-validation")
    level = tensors.get(THRESHOLD)
    if level is not None and (level.shape or level.dtype != torch.float64 or not level.isfinite()):
        raise ValueError("threshold of cross-validation")
    values: dict[str, Any] = {name: tensors[name] for name in PER_IMAGE}
    images = ValidatedImages(**values, alike_above=None if level is None else float(level))
    numbers = (images.labels, images.groups, images.predicted)
    shapes = {tuple(value.shape) for value in (*numbers, images.confidence)}
    if shapes != {(len(images.features),)} or any(one.dtype != torch.long for one in numbers):
        raise ValueError("images of cross-validation")
    for one, least in ((images.labels, 0), (images.predicted, -1)):
        if len(one) and not least <= int(one.min()) <= int(one.max()) < classes:
            raise ValueError("classes of cross-validation")
    return images


@torch.inference_mode()
def cross_validated(
    scorer: ClosedForm, classes: ClassTable, images: ValidatedImages, share: float = SHARE, folds: int = FOLDS
) -> tuple[ValidatedImages, Tensor]:
    """Predict each image by a model that was fitted to images of other groups.

    Args:
        scorer: The fitted scorer, whose penalty is used for all folds.
        classes: The classes it knows.
        images: Images that it has learnt, one or more; their threshold of near-duplicates is kept if it still fits.
        share: By which images are alike, see `near_duplicates.threshold`.
        folds: In how many parts the images are divided.

    Returns:
        The images with their groups and predictions, and the scores (N, classes).
    """
    vectors = feature_vectors(images.features.float())
    level = threshold(vectors, images.labels, share, images.alike_above)
    grouped = replace(images, groups=_groups_at(vectors, images.labels, level), alike_above=level)
    return predicted_by_others(scorer, classes, grouped, assign_folds(grouped.groups, images.labels, folds))


@torch.inference_mode()
def predicted_by_others(
    scorer: ClosedForm, classes: ClassTable, images: ValidatedImages, folds: Tensor
) -> tuple[ValidatedImages, Tensor]:
    """Predict the images of each fold (N,) by a model that was fitted to those of the others, see `cross_validated`."""
    features = images.features.double()
    vectors = scorer.embed(features)
    everything = scorer.emptied()
    everything.add(vectors, images.labels, classes.seen)
    scores = torch.full((len(images), classes.seen), -torch.inf)
    for fold in folds.unique().tolist():
        rows = (folds == fold).nonzero()[:, 0]
        scores[rows] = _scores_without(everything, rows, vectors, images, classes)
    return replace(images, predicted=scores.argmax(1)), scores


def near_groups(vectors: Tensor, labels: Tensor, share: float) -> Tensor:
    """Return the group of each image, by the threshold of a share; each class has numbers of its own."""
    return _groups_at(vectors, labels, threshold(vectors, labels, share))


def _groups_at(vectors: Tensor, labels: Tensor, alike_above: float) -> Tensor:
    groups = torch.arange(len(labels))
    for label in labels.unique().tolist():
        rows = (labels == label).nonzero()[:, 0]
        groups[rows] = rows[class_groups(vectors[rows], alike_above)]
    return groups


def assign_folds(groups: Tensor, labels: Tensor, count: int = FOLDS) -> Tensor:
    """Return one of `count` folds for each image: whole groups, and each class divided as equally as its groups allow.

    >>> assign_folds(torch.tensor([0, 0, 2, 3, 4]), torch.zeros(5, dtype=torch.long)).tolist()
    [0, 0, 1, 2, 3]
    """
    folds = torch.zeros_like(labels)
    for label in labels.unique().tolist():
        rows = (labels == label).nonzero()[:, 0]
        sizes, first = [0] * count, label % count  # so that small classes don't all use the same folds
        found, totals = groups[rows].unique(return_counts=True)
        for group, images in sorted(zip(found.tolist(), totals.tolist(), strict=True), key=lambda pair: -pair[1]):
            fold = min(range(count), key=lambda one: (sizes[one], (one - first) % count))
            sizes[fold] += images
            folds[groups == group] = fold
    return folds


def _scores_without(
    everything: ClosedForm, rows: Tensor, vectors: Tensor, images: ValidatedImages, classes: ClassTable
) -> Tensor:
    """Return the scores (rows, classes) of some images by a scorer that was fitted to the others."""
    left_out = everything.emptied()
    left_out.add(vectors[rows], images.labels[rows], classes.seen)
    fitted = everything.less(left_out)
    fitted.solve_or_refuse()
    features = images.features[rows].float()
    scores: Tensor = fitted(Output(features[:, :0], features), classes)
    return scores.masked_fill(fitted.counts.sum(0) == 0, -torch.inf)


class ValidatedUpdate(NamedTuple):
    """The result of `validate_update`."""

    before: ValidatedImages
    """The images as the model before the update predicts them, with the same images left out."""
    images: ValidatedImages
    """As the model after it does; their confidence is not computed."""
    scores: Tensor
    """(N, classes)"""


def validate_update(
    scorer: ClosedForm,
    classes: ClassTable,
    features: Tensor,
    labels: Tensor,
    previous: tuple[ClosedForm, ClassTable, ValidatedImages] | None,
    most: int,
) -> ValidatedUpdate:
    """Cross-validate a scorer after an update on the images that it has learnt, earlier ones included.

    Args:
        scorer: The fitted scorer.
        classes: The classes it knows.
        features: (N, width) those of the images that the update has brought.
        labels: (N,) their classes.
        previous: The scorer before the update, the classes that it knew, and its images; None for a first update.
        most: How many images are validated at most.
    """
    images = ValidatedImages.of(features, labels, torch.full_like(labels, -1))
    if previous:
        earlier, known, kept = previous
        scores: Tensor = earlier(Output(features[:, :0], features), known)
        images = kept.joined(replace(images, predicted=scores.argmax(1)))
    rows = images.rows_at_most(most)
    chosen = images.take(rows)
    if not len(chosen):
        return ValidatedUpdate(chosen, chosen, torch.empty(0, classes.seen))
    validated, scores = cross_validated(scorer, classes, chosen)
    before = replace(validated, predicted=chosen.predicted)
    if previous:
        learnt_before = (rows < len(previous[2])).nonzero()[:, 0]
        before = _before_update(previous[0], previous[1], before, learnt_before)
    return ValidatedUpdate(before, validated, scores)


def _before_update(scorer: ClosedForm, classes: ClassTable, images: ValidatedImages, learnt: Tensor) -> ValidatedImages:
    """Predict images as before the update: the rows that were `learnt` then by models without the same folds as after.

    If the folds were not the same, a class would seem to gain or to lose by which images are left out together. The
    others were new to the scorer, and stay as they are.
    """
    if not len(learnt):
        return images
    folds = assign_folds(images.groups, images.labels)[learnt]
    predicted = images.predicted.clone()
    predicted[learnt] = predicted_by_others(scorer, classes, images.take(learnt), folds)[0].predicted
    return replace(images, predicted=predicted)
