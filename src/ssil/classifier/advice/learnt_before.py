"""What a classifier keeps of images which it has learnt, with which new images are judged: features, and classes."""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple, Self

import torch
from torch import Tensor
from torch.nn import functional as F

from ssil.classifier.prediction import Classifier

COUNTED_TWICE = 0.98
"""The cosine of features above which an image is one whose features are kept: a kept image is a smaller copy."""


class LearntBefore(NamedTuple):
    """Features of images that were learnt before an update, and the names of their classes."""

    features: Tensor
    names: list[str]

    @classmethod
    def of(cls, known: Classifier | None) -> Self:
        """Return the features by which a classifier is cross-validated; none if it has none."""
        if not known or known.validated is None:
            return cls(torch.empty(0, 0), [])
        names = [known.classes.names[label] for label in known.validated.labels.tolist()]
        return cls(known.validated.features.float(), names)

    def without(self, features: Tensor, names: Sequence[str]) -> "LearntBefore":
        """Return the features without those of these images: an image that is examined must not count twice.

        Args:
            features: The features of the examined images.
            names: Their classes; an image in another class is no twin, but a copy.
        """
        if not self.names:
            return self
        label_of = {name: label for label, name in enumerate({*self.names, *names})}
        mine, theirs = (torch.tensor([label_of[name] for name in every]) for every in (self.names, names))
        cosines = F.normalize(self.features) @ F.normalize(features).T
        others = ~((cosines > COUNTED_TWICE) & (mine[:, None] == theirs)).any(1)
        return LearntBefore(self.features[others], [self.names[row] for row in others.nonzero().flatten().tolist()])


def learnt_classes(known: Classifier | None) -> dict[str, str]:
    """Return the class of each image, by its checksum, that a classifier has counted or keeps."""
    if not known:
        return {}
    groups = zip(known.classes.names, known.exemplars, known.holdout, strict=True)
    kept = {image.original_digest: name for name, *both in groups for image in chain(*both)}
    counted = zip(known.classes.names, known.counted, strict=False)
    return {digest: name for name, digests in counted for digest in digests} | kept
