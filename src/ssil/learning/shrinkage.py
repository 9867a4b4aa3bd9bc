"""Shrinking a covariance matrix: towards the identity, by as much as held-back images ask for, or as FeCAM does."""

import numpy as np
import torch
from torch import Tensor

from ssil.learning.feature_statistics import Sums

SHRINKAGES = (1e-4, 1e-3, 0.01, 0.02, 0.05, *(step / 10 for step in range(1, 11)))
"""The candidates."""


def shrunk(covariance: Tensor, shrinkage: float) -> Tensor:
    """Return (1 - shrinkage) covariance + shrinkage (mean variance) I; the identity for a covariance of zero.

    >>> shrunk(torch.tensor([[3.0, 1.0], [1.0, 1.0]]), 0.5)
    tensor([[2.5000, 0.5000],
            [0.5000, 1.5000]])
    """
    identity = torch.eye(len(covariance), dtype=covariance.dtype, device=covariance.device)
    variance = covariance.diagonal().mean()
    return (1 - shrinkage) * covariance + shrinkage * variance * identity if variance > 0 else identity


def likeliest_shrinkage(kept: Sums, held: Sums) -> float:
    """Return the shrinkage of the `kept` images' covariance under which the `held` back images are likeliest.

    A class is a normal distribution around the mean of its kept images, or of its held-back ones if none was kept.
    The mean log-likelihood is -(log det S + trace(S^-1 H)) / 2 with H the held-back images' scatter about these means,
    divided by their number: it is a function of sums, so the choice does not depend on any order.
    """
    covariance = kept.covariance()
    if not held.images or not covariance.any():
        return 1.0
    centres = torch.where(kept.counts[:, None] > 0, kept.means, held.means)
    # By NumPy: with several threads, PyTorch's own eigh may fail on the covariance of a few images (rank 5 of 1280).
    variances, axes = (torch.from_numpy(part).to(covariance) for part in np.linalg.eigh(covariance.cpu().numpy()))
    spread = ((axes.T @ held.scatter_about(centres)) * axes.T).sum(1) / held.images
    variances = variances.clamp(min=0)

    def loss(shrinkage: float) -> float:
        values = (1 - shrinkage) * variances + shrinkage * variances.mean()
        return float((values.log() + spread / values).sum())

    return min(SHRINKAGES, key=loss)


def correlation_factor(covariance: Tensor, shrinkage: float) -> Tensor:
    """Return the Cholesky factor of the correlation matrix of a shrunk covariance, as FeCAM shrinks it.

    `shrinkage` times the mean variance is added to the variances, and as much of the mean covariance to the others.
    The factor of a covariance of zero is the identity.
    """
    width = len(covariance)
    identity = torch.eye(width).to(covariance)
    variance = covariance.diagonal().mean()
    others = (covariance.sum() - covariance.trace()) / max(1, width * (width - 1))
    if variance <= 0:
        return identity
    mixed = covariance + shrinkage * (variance * identity + others * (1 - identity))
    deviations = mixed.diagonal().sqrt()
    factor: Tensor = torch.linalg.cholesky(mixed / torch.outer(deviations, deviations))
    return factor
