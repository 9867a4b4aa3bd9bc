"""Features that a classifier keeps of images which it has learnt, with which new images are judged."""

from collections.abc import Sequence
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
