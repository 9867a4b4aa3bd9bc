"""What linear discriminants say of each image if they are computed from all other images: a few matrix products.

An image that was learnt under a wrong label pulls its class towards itself. So each image is judged by the classes'
means and the common covariance without it, which follow from those with it by an update of rank one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ssil.learning.feature_statistics import tukey
from ssil.learning.shrinkage import shrunk

SHRINKAGE, POWER = 0.4, 0.5
"""Of the covariance, and of Tukey's transform of features."""
BLOCK = 1024
"""Images whose distances are in memory at a time."""
SAMPLE, SAMPLE_NUMBERS = 2000, 4_000_000
"""Images to which the temperature is fitted at most, and distances of them."""
TEMPERATURES = [10 ** (step / 20) for step in range(-20, 61)]
"""From 0.1 to 1,000, on a logarithmic scale."""


@dataclass(frozen=True)
class LeftOut:
    """Images (N) of K classes, whitened by the covariance within the classes of all of them."""

    whitened: Tensor
    """(N, width)"""
    means: Tensor
    """(K, width)"""
    labels: Tensor
    """(N,)"""
    counts: Tensor
    """(K,)"""
    weight: float
    """The weight of one image's deviation in the covariance."""

    @classmethod
    def of(cls, features: Tensor, labels: Tensor, shrinkage: float = SHRINKAGE) -> "LeftOut":
        """Return the statistics of features (N, width) with labels 0 to K - 1, of which each has an image."""
        vectors, counts = tukey(features.double(), POWER), torch.bincount(labels).double()
        means = _sums(vectors, labels, len(counts)) / counts[:, None]
        residuals = vectors - means[labels]
        factor = torch.linalg.cholesky(shrunk(residuals.T @ residuals / len(vectors), shrinkage))
        whitened, centres = (torch.linalg.solve_triangular(factor, rows.T, upper=False).T for rows in (vectors, means))
        return cls(whitened, centres, labels, counts, (1 - shrinkage) / len(vectors))

    def distances(self, rows: Tensor) -> Tensor:
        """Return the squared Mahalanobis distances (n, K) of some images to the classes, computed without the image.

        Without an image x of a class with n images and mean m, the mean is m - r / (n - 1) with r = x - m, and the
        scatter within the classes is less by n / (n - 1) r r'; by Sherman and Morrison, the inverse of the covariance
        (here the identity) is I + g r r'. The number of all images and the amount of shrinkage stay as they are. The
        only image of its class is infinitely far from it.
        """
        points, labels = self.whitened[rows], self.labels[rows]
        count, away = self.counts[labels], points - self.means[labels]
        spread, others = away.square().sum(1), (count - 1).clamp(min=1)
        shed = self.weight * count / others * (count > 1)
        gain = shed / (1 - shed * spread)
        along = (away * points).sum(1)[:, None] - away @ self.means.T
        found = torch.cdist(points, self.means).square() + gain[:, None] * along.square()
        own = (count / others).square() * (spread + gain * spread.square())
        found[torch.arange(len(rows)), labels] = torch.where(count > 1, own, torch.inf)
        return found

    def blocks(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the rows of some images and their distances, until all are done."""
        for rows in torch.arange(len(self.labels)).split(BLOCK):
            yield rows, self.distances(rows)


def _sums(vectors: Tensor, labels: Tensor, classes: int) -> Tensor:
    return vectors.new_zeros(classes, vectors.shape[1]).index_add_(0, labels, vectors)


def likeliest_temperature(statistics: LeftOut) -> float:
    """Return the number by which distances are divided so that the labels of some of the images are likeliest."""
    count, classes = len(statistics.labels), len(statistics.counts)
    rows = torch.arange(0, count, max(1, count // min(SAMPLE, max(1, SAMPLE_NUMBERS // classes))))
    rows = rows[statistics.counts[statistics.labels[rows]] > 1]
    distances, labels = statistics.distances(rows), statistics.labels[rows]
    if not len(rows):
        return 1.0

    def loss(temperature: float) -> float:
        return float(torch.nn.functional.cross_entropy(-distances / (2 * temperature), labels))

    return min(TEMPERATURES, key=loss)


def probabilities(distances: Tensor, temperature: float) -> Tensor:
    """Return the probability of each class (n, K) under normal distributions with one covariance, equally frequent."""
    return (-distances / (2 * temperature)).softmax(1)
