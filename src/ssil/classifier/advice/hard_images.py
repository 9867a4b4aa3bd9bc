"""Hard images: those that a classifier takes for another class, or recognises only just, if it has not learnt them."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from ssil.classifier.advice.confusions import ImagesAtHand
from ssil.classifier.holdout import holdout_scores
from ssil.classifier.image_file import ImageFile
from ssil.classifier.prediction import Classifier
from ssil.learning.evaluation import summarise
from ssil.learning.snapshot import MAIN

ONLY_JUST = 0.5
"""An image is recognised only just if the probability of its class is below this: no class is likelier than not."""


class HardImage(NamedTuple):
    """An image that is taken for another class, or recognised only just."""

    image: ImageFile
    label: str
    taken_for: str
    """The class that it is taken for; its own if it is recognised only just."""
    confidence: float
    """The probability of that class."""

    @property
    def key(self) -> tuple[str, str]:
        """The checksum of the image as it arrived, and its class."""
        return self.image.original_digest, self.label


def hard_images(classifier: Classifier, at_hand: ImagesAtHand) -> list[HardImage]:
    """Return the hard images: first those that are taken for another class, the surest first, then the least sure.

    They are those by which the accuracy is measured: of cross-validation, or else of the hold-out set. An image of
    cross-validation that is not at hand can't be shown, and is left out.

    Args:
        classifier: The classifier after an update.
        at_hand: Images with their features.
    """
    validated = classifier.validated is not None and len(classifier.validated)
    found = [*(_validated(classifier, at_hand) if validated else _held_out(classifier))]
    wrong = [one for one in found if one.taken_for != one.label]
    right = [one for one in found if one.taken_for == one.label]
    return [*sorted(wrong, key=lambda one: -one.confidence), *sorted(right, key=lambda one: one.confidence)]


def _validated(classifier: Classifier, at_hand: ImagesAtHand) -> Iterator[HardImage]:
    """Yield the hard images of cross-validation; classes with a single image were not tried."""
    images, names = classifier.validated, classifier.classes.names
    assert images is not None
    tried = (torch.bincount(images.labels, minlength=len(names))[images.labels] > 1) & (images.predicted >= 0)
    hard = tried & _is_hard(images.labels, images.predicted, images.confidence)
    for label in images.labels[hard].unique().tolist():
        rows = (hard & (images.labels == label)).nonzero()[:, 0]
        shown = at_hand.find(images.features[rows].float(), names[label])
        for row, image in zip(rows.tolist(), shown, strict=True):
            if image:
                yield HardImage(image, names[label], names[images.predicted[row]], float(images.confidence[row]))


def _held_out(classifier: Classifier) -> Iterator[HardImage]:
    """Yield the hard images of the hold-out set."""
    if not any(classifier.holdout):
        return
    classes, scorer = classifier.classes, classifier.calibrated.scorers[MAIN]
    found = summarise(scorer, *holdout_scores(classifier, classifier.holdout), classes.old)
    images = [image for group in classifier.holdout for image in group]
    for row in _is_hard(found.labels, found.top[:, 0], found.confidence).nonzero()[:, 0].tolist():
        label, other = classes.names[found.labels[row]], classes.names[found.top[row, 0]]
        yield HardImage(images[row], label, other, float(found.confidence[row]))


def _is_hard(labels: Tensor, predicted: Tensor, confidence: Tensor) -> Tensor:
    return (predicted != labels) | (confidence < ONLY_JUST)
