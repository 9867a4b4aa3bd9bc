"""RanPAC: random projections and ridge regression (McDonnell et al., NeurIPS 2023)."""

from functools import partial
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from ssil.core.classes import ClassTable
from ssil.core.randomness import Randomness
from ssil.learning.feature_statistics import ClosedForm, Sums, closed_form
from ssil.learning.method import Count, Method
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.learning.snapshot import TaskState
from ssil.nn.network import Output

PENALTIES = tuple(10.0**power for power in range(-8, 10))
"""The candidates, as in the authors' code."""
FALLBACK = 0.1
"""The penalty relative to the mean squared length of a projected vector, where images are too few to choose it."""
SCALE = 15.0
"""The scores are so many regression values, which brings probabilities near to what they should be."""


class RandomRidge(ClosedForm):
    """Ridge regression of one-hot labels on ReLU(W' f), with a random matrix W."""

    projection: Tensor
    weight: Tensor

    def __init__(self, width: int = 2000, penalty: float | None = None) -> None:
        super().__init__()
        self.width, self.penalty = width, penalty
        self.register_buffer("projection", torch.empty(0, width))
        self.register_buffer("weight", torch.empty(0, width))

    def shapes(self, classes: int, width: int) -> dict[str, tuple[int, ...]]:
        """As of all sums, and those of the projection and the solution."""
        own = {"projection": (len(self.projection), self.width), "weight": (classes, self.width)}
        return {**super().shapes(classes, self.width if classes else 0), **own}

    def start(self, state: TaskState) -> None:
        """Draw W in the first task, as the run's seed wants it."""
        if not self.counts.shape[1]:
            features = state.network.head.weight.shape[-1]
            drawn = torch.randn(features, self.width, generator=Randomness(state.random.seed).at("projection"))
            self.projection = drawn.to(self.projection)

    def embed(self, features: Tensor) -> Tensor:
        """ReLU(W' f) for features of length 1."""
        return (F.normalize(features) @ self.projection.to(features)).relu()

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        """`SCALE` times the regression value of each class."""
        return SCALE * self.embed(output.features) @ self.weight.T

    def solve(self) -> None:
        """H' (G + penalty I)^-1 Q over all images, with the penalty that suits those that were held back."""
        self._chosen = self.penalty or self.settled or best_penalty(self.sums_of(0), self.sums_of(1))
        found = self.sums_of()
        penalised = found.gram + self._chosen * torch.eye(self.width).to(found.gram)
        self.weight = torch.cholesky_solve(found.sums.T, torch.linalg.cholesky(penalised)).T.to(self.weight)


def best_penalty(kept: Sums, held: Sums) -> float:
    """The penalty whose solution for the `kept` images has the least squared error on the `held` back ones.

    The error, trace(B' G B) - 2 trace(B' Q) + a constant, is a function of the held-back sums: no order matters. If
    most classes have too few images to be in both parts, it is `FALLBACK` of the mean squared length of a vector.
    """
    if 2 * int(((kept.counts > 0) & (held.counts > 0)).sum()) < len(kept.counts):
        return FALLBACK * float((kept.gram + held.gram).trace() / (kept.images + held.images))
    values, axes = torch.linalg.eigh(kept.gram)
    targets, wanted, gram = axes.T @ kept.sums.T, axes.T @ held.sums.T, axes.T @ held.gram @ axes

    def loss(penalty: float) -> float:
        solution = targets / (values.clamp(min=0) + penalty)[:, None]
        return float(((gram @ solution - 2 * wanted) * solution).sum())

    return min(reversed(PENALTIES), key=loss)


@register()
def ranpac(training: Training, *, width: Count = 2000, penalty: Annotated[float, Field(gt=0)] | None = None) -> Method:
    """RanPAC: ridge regression on a random ReLU projection (McDonnell et al., NeurIPS 2023); nothing is trained.

    With a fixed penalty it is ACIL (Zhuang et al., NeurIPS 2022), whose recursive least squares give the same
    solution. Departures: no first-session adaptation of the network; features have length 1 before the projection;
    2,000 projections (the paper has 10,000, on a transformer); the fifth that is held back to choose the penalty is
    a fifth of all images, not of the newest task's, and all of them count in the end.

    Args:
        width: The number of random projections, M.
        penalty: The ridge penalty, lambda; by default that of the powers of ten with the least squared error.
    """
    return closed_form(training, partial(RandomRidge, width, penalty))
