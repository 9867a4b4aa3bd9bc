"""Classes that are taken for another one, counted on the same images as the accuracy that is told."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from ssil.classifier.advice.learnt_before import COUNTED_TWICE
from ssil.classifier.cross_validation import ValidatedImages
from ssil.classifier.holdout import holdout_scores
from ssil.classifier.image_file import ImageFile
from ssil.classifier.prediction import Classifier


class ConfusedPair(NamedTuple):
    """Images of a class that are taken for another one."""

    label: str
    other: str
    images: tuple[ImageFile, ...]
    """Those of them that are at hand: of images that were learnt before, features may be kept alone."""
    wrong: int
    """How many are taken for the other class."""
    total: int
    """Images of the class that were tried."""


class ImagesAtHand:
    """Images with features, by the names of their classes."""

    def __init__(self, images: Sequence[ImageFile], features: Tensor, names: Sequence[str]) -> None:
        self.images, self.features = images, features
        self.rows = defaultdict[str, list[int]](list)
        for row, name in enumerate(names):
            self.rows[name].append(row)

    def find(self, features: Tensor, name: str) -> list[ImageFile | None]:
        """Return for each row of features (n, width) the image of a class that has them; None if it is not at hand.

        A kept image is a smaller copy, and has nearly the same features.
        """
        own = self.rows.get(name)
        if not own:
            return [None] * len(features)
        nearest = (F.normalize(features) @ F.normalize(self.features[own]).T).max(1)
        pairs = zip(nearest.indices.tolist(), nearest.values.tolist(), strict=True)
        return [self.images[own[row]] if cosine > COUNTED_TWICE else None for row, cosine in pairs]


def confused_pairs(classifier: Classifier, at_hand: ImagesAtHand | None) -> Iterator[ConfusedPair]:
    """Yield the pairs of classes that a classifier confuses, the most frequent first.

    Args:
        classifier: It was cross-validated, or else has a hold-out set; without either there are no pairs.
        at_hand: Images that may be shown as examples of what was cross-validated.
    """
    validated, names = classifier.validated, classifier.classes.names
    if validated is not None and len(validated):
        yield from _ordered(_validated_pairs(validated, names, at_hand))
    elif any(classifier.holdout):
        yield from _ordered(_holdout_pairs(classifier))


def _ordered(pairs: Iterator[ConfusedPair]) -> list[ConfusedPair]:
    return sorted(pairs, key=lambda pair: -pair.wrong)


def _validated_pairs(
    validated: ValidatedImages, names: Sequence[str], at_hand: ImagesAtHand | None
) -> Iterator[ConfusedPair]:
    """Yield the pairs by cross-validation; classes with a single image were not tried."""
    counts = torch.bincount(validated.labels, minlength=len(names)).tolist()
    wrong = (validated.predicted != validated.labels) & (validated.predicted >= 0)
    rows = defaultdict[tuple[int, int], list[int]](list)
    for row in wrong.nonzero()[:, 0].tolist():
        rows[int(validated.labels[row]), int(validated.predicted[row])].append(row)
    for (label, other), found in rows.items():
        if counts[label] > 1:
            features = validated.features[found].float()
            shown = at_hand.find(features, names[label]) if at_hand else []
            images = {image.digest: image for image in shown if image}
            yield ConfusedPair(names[label], names[other], tuple(images.values()), len(found), counts[label])


def _holdout_pairs(classifier: Classifier) -> Iterator[ConfusedPair]:
    """Yield the pairs by the hold-out set."""
    predicted = holdout_scores(classifier, classifier.holdout)[0].argmax(1).tolist()
    images = [(image, label) for label, group in enumerate(classifier.holdout) for image in group]
    pairs = defaultdict[tuple[int, int], list[ImageFile]](list)
    for (image, label), other in zip(images, predicted, strict=True):
        if label != other:
            pairs[label, other].append(image)
    names = classifier.classes.names
    for (label, other), found in pairs.items():
        yield ConfusedPair(names[label], names[other], tuple(found), len(found), len(classifier.holdout[label]))
