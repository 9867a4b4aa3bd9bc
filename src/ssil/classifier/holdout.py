"""The hold-out set: images on which each update's effect on every class is measured.

They are never trained on. Methods that add up features learn them after they have judged (see `final_fit`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ssil.classifier.feature_extraction import trained_network
from ssil.classifier.final_fit import without_holdout
from ssil.classifier.image_file import ImageFile, ImagesByClass, LabelledImages
from ssil.classifier.prediction import Classifier
from ssil.core.randomness import Randomness
from ssil.learning.evaluation import summarise
from ssil.learning.memory import FixedBudget
from ssil.learning.metrics import Predictions, calibration_error, score_gap
from ssil.learning.snapshot import MAIN

MAX_PER_CLASS, ONE_IN, MIN_CLASS_SIZE = 10, 5, 5
"""Of a new class one image in five is held out, at most ten, and none of a class with fewer than five."""
BUDGET_SHARE = 0.2
"""The hold-out set's largest share of all kept images."""


def hold_out(
    images: LabelledImages,
    held: Sequence[Sequence[ImageFile]],
    names: Sequence[str],
    budget: int,
    random: Randomness,
) -> tuple[LabelledImages, list[tuple[ImageFile, ...]]]:
    """Split newly arrived images into a training set and the hold-out set.

    Of a new class with five or more images, one in five is held out, at most ten. A known class keeps the hold-out
    images that it has; its newly arrived images are all trained on.

    Args:
        images: The newly arrived images.
        held: The hold-out images of each class that was known before.
        names: All classes, the known ones first.
        budget: The largest size of the whole hold-out set. If the images above are more, the classes share the
            budget equally.
        random: Draws the hold-out images of new classes.

    Returns:
        The images to train on, and the hold-out set of each class.
    """
    groups: dict[str, list[ImageFile]] = {name: [] for name in names}
    for image, name in images:
        groups[name].append(image)
    drawn = [*held, *(_draw(groups[name], random.at("quiz", name)) for name in names[len(held) :])]
    sizes = FixedBudget(budget).quotas([*map(len, drawn)])
    holdout = [tuple(group[:size]) for group, size in zip(drawn, sizes, strict=True)]
    taken = {image.original_digest for group in (*held, *holdout) for image in group}
    return [(image, name) for image, name in images if image.original_digest not in taken], holdout


def _draw(images: Sequence[ImageFile], generator: torch.Generator) -> list[ImageFile]:
    """Draw the hold-out images of one class, whatever the order in which its images arrived."""
    count = min(MAX_PER_CLASS, len(images) // ONE_IN) if len(images) >= MIN_CLASS_SIZE else 0
    ordered = sorted(images, key=lambda image: image.digest)
    return [ordered[index] for index in torch.randperm(len(ordered), generator=generator)[:count].tolist()]


class ClassResult(NamedTuple):
    """How many of a class's hold-out images are classified correctly."""

    correct: int
    total: int


@dataclass(frozen=True)
class HoldoutResult:
    """A classifier's results on a hold-out set, for each class with an image in it, in order of arrival."""

    classes: Mapping[str, ClassResult]
    calibration_error: float
    score_gap: float | None
    """Of new over old classes; None if there are no old or no new ones."""

    def accuracy(self, names: Iterable[str]) -> float | None:
        """Return the accuracy in percent over the images of these classes; None if they have no image."""
        found = [self.classes[name] for name in names if name in self.classes]
        return 100 * sum(result.correct for result in found) / sum(result.total for result in found) if found else None


def accuracy_drops(before: HoldoutResult, after: HoldoutResult, names: Sequence[str]) -> dict[str, float]:
    """Return the classes of `names` whose accuracy fell, with the points they lost, the largest loss first."""
    both = ((name, before.accuracy([name]), after.accuracy([name])) for name in names)
    found = {name: was - now for name, was, now in both if was is not None and now is not None and was > now}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def evaluate(classifier: Classifier, holdout: ImagesByClass | None = None) -> HoldoutResult | None:
    """Evaluate a classifier on its own hold-out set, or on its classes' part of another one; None if that is empty.

    It is evaluated as it was before it was given hold-out images, if it was given any (see `final_fit`).
    """
    own = (classifier.holdout if holdout is None else holdout)[: classifier.classes.seen]
    return evaluate_scores(classifier, holdout_scores(classifier, own)) if any(own) else None


def evaluate_scores(classifier: Classifier, scored: tuple[Tensor, Tensor]) -> HoldoutResult:
    """Evaluate a classifier by what `holdout_scores` has returned for it, at any temperature."""
    classes, scorer = classifier.classes, classifier.calibrated.scorers[MAIN]
    return _result(summarise(scorer, *scored, classes.old), classes.names, classes.old)


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
