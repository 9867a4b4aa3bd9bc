"""Results on images that a model has not learnt: its hold-out set, or by cross-validation, for each class."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ssil.classifier.accuracy import ClassResult, Interval, added, grouped_interval
from ssil.classifier.cross_validation import ValidatedImages
from ssil.classifier.feature_extraction import trained_network
from ssil.classifier.final_fit import without_holdout
from ssil.classifier.image_file import ImagesByClass
from ssil.classifier.prediction import Classifier
from ssil.learning.evaluation import summarise
from ssil.learning.metrics import Predictions, calibration_error, score_gap
from ssil.learning.snapshot import MAIN

MEANING = "of images like those it was given; images from another place or day may do worse"
"""What the accuracy in a `HoldoutResult` is the accuracy of."""


@dataclass(frozen=True)
class HoldoutResult:
    """A classifier's results on images that it has not learnt, for each class with such images, in order of arrival."""

    classes: Mapping[str, ClassResult]
    calibration_error: float
    score_gap: float | None
    """Of new over old classes; None if there are no old or no new ones, or it is not known."""
    groups: Mapping[str, Sequence[ClassResult]] = field(default_factory=dict)
    """By cross-validation: the results on each class's groups of images that are alike. Empty for a hold-out set."""

    def result(self, names: Iterable[str]) -> ClassResult:
        """Return the result on the images of these classes together."""
        return added(self.classes[name] for name in names if name in self.classes)

    def accuracy(self, names: Iterable[str]) -> float | None:
        """Return the accuracy in percent over the images of these classes; None if they have no image."""
        return self.result(names).percent

    def interval(self, names: Iterable[str]) -> Interval | None:
        """Return the 95 % interval of the accuracy on these classes; None if they have no image."""
        wanted = [*names]
        if not self.groups:
            return self.result(wanted).interval
        return grouped_interval([group for name in wanted for group in self.groups.get(name, ())])

    @property
    def cross_validated(self) -> bool:
        """Whether the results are those of cross-validation, not those of a hold-out set."""
        return bool(self.groups)


def accuracy_drops(before: HoldoutResult, after: HoldoutResult, names: Sequence[str]) -> dict[str, float]:
    """Return the classes of `names` whose accuracy fell, with the points they lost, the largest loss first."""
    both = ((name, before.accuracy([name]), after.accuracy([name])) for name in names)
    found = {name: was - now for name, was, now in both if was is not None and now is not None and was > now}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def evaluate(classifier: Classifier, holdout: ImagesByClass | None = None) -> HoldoutResult | None:
    """Evaluate a classifier by its cross-validation, or else its own hold-out set, or its classes' part of another one.

    On a hold-out set it is evaluated as it was before it was given such images, if it was given any (see `final_fit`).
    Return None if there is no image.
    """
    if holdout is None and classifier.validated is not None and len(classifier.validated):
        return validated_result(classifier.validated, classifier.classes.names)
    own = (classifier.holdout if holdout is None else holdout)[: classifier.classes.seen]
    return evaluate_scores(classifier, holdout_scores(classifier, own)) if any(own) else None


def evaluate_scores(classifier: Classifier, scored: tuple[Tensor, Tensor]) -> HoldoutResult:
    """Evaluate a classifier by what `holdout_scores` has returned for it, at any temperature."""
    classes, scorer = classifier.classes, classifier.calibrated.scorers[MAIN]
    return _result(summarise(scorer, *scored, classes.old), classes.names, classes.old)


def validated_result(images: ValidatedImages, names: Sequence[str], gap: float | None = None) -> HoldoutResult | None:
    """Return the result of cross-validation; None if no class has two images, of which one can be predicted.

    Args:
        images: The images with their predictions.
        names: The classes, in order of arrival; images of further classes don't count.
        gap: The `score_gap`, if it is known.
    """
    counts = torch.bincount(images.labels, minlength=len(names))
    counted = images.take(((counts[images.labels] > 1) & (images.labels < len(names))).nonzero()[:, 0])
    correct, groups = counted.predicted == counted.labels, dict[str, list[ClassResult]]()
    for label in counted.labels.unique().tolist():
        rows = (counted.labels == label).nonzero()[:, 0]
        _, numbers, totals = counted.groups[rows].unique(return_inverse=True, return_counts=True)
        right = torch.bincount(numbers, weights=correct[rows].double(), minlength=len(totals)).long().tolist()
        groups[names[label]] = [ClassResult(*pair) for pair in zip(right, totals.tolist(), strict=True)]
    if not groups:
        return None
    unknown = torch.full_like(counted.confidence, torch.nan)
    predictions = Predictions(counted.labels, counted.predicted[:, None], counted.confidence, *[unknown] * 5)
    classes = {name: added(found) for name, found in groups.items()}
    return HoldoutResult(classes, calibration_error(predictions), gap, groups)


def holdout_scores(classifier: Classifier, holdout: ImagesByClass) -> tuple[Tensor, Tensor]:
    """Return the scores (n, seen) and the labels of the images in a hold-out set, on the CPU; it must not be empty.

    They are those of the classifier without its hold-out images.
    """
    return image_scores(without_holdout(classifier), holdout)


@torch.inference_mode()
def image_scores(classifier: Classifier, holdout: ImagesByClass) -> tuple[Tensor, Tensor]:
    """Return the scores (n, seen) and the labels of images by class, on the CPU; there must be one at least."""
    network = trained_network(classifier.settings, classifier.snapshot)
    labels = [label for label, group in enumerate(holdout) for _ in group]
    samples = network.samples([image for group in holdout for image in group], labels)
    snapshot, context = network.trained_part(classifier.snapshot), network.context(samples)
    outputs = context.batched_outputs(snapshot.network, torch.arange(len(samples)))
    return torch.cat([snapshot.scores(output) for _, output in outputs]).cpu(), samples.labels


def _result(predictions: Predictions, names: Sequence[str], old: int) -> HoldoutResult:
    totals, correct = (
        torch.bincount(labels, minlength=len(names)).tolist()
        for labels in (predictions.labels, predictions.labels[predictions.correct])
    )
    counts = zip(names, correct, totals, strict=True)
    gap = score_gap(predictions) if 0 < old < len(names) else None
    return HoldoutResult(
        {name: ClassResult(right, total) for name, right, total in counts if total}, calibration_error(predictions), gap
    )
