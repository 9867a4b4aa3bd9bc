"""SLDA: streaming linear discriminant analysis (Hayes & Kanan, CVPR Workshops 2020)."""

from functools import partial
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from ssil.core.classes import ClassTable
from ssil.learning.feature_statistics import LinearClosedForm, closed_form
from ssil.learning.method import Method
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.learning.shrinkage import likeliest_shrinkage, shrunk
from ssil.nn.network import Output

INDEPENDENT = 64
"""Of so many features the log-likelihood counts in full. Those of wide backbones depend on each other more than a
covariance from few images shows; without the scale, probabilities would be nearly 0 or 1."""
Shrinkage = Annotated[float, Field(gt=0, le=1)]
Power = Annotated[float, Field(gt=0, le=1)]


class LinearDiscriminants(LinearClosedForm):
    """The log-likelihood of each class, up to a term that they share, if all have one covariance."""

    def __init__(self, shrinkage: float | None = None, power: float = 0.5) -> None:
        super().__init__(shrinkage, power)

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        """For each class mean m: m' S^-1 f - m' S^-1 m / 2, times a scale that no decision depends on."""
        return min(1.0, INDEPENDENT / self.weight.shape[1]) * self.linear(output.features)

    def solve(self) -> None:
        """Invert the covariance of all images, shrunk as is likeliest for the images that were held back."""
        self._chosen = self.shrinkage or self.settled or likeliest_shrinkage(self.sums_of(0), self.sums_of(1))
        found = self.sums_of()
        self.set_linear(found.means, torch.linalg.cholesky(shrunk(found.covariance(), self._chosen)))


@register()
def slda(training: Training, *, shrinkage: Shrinkage | None = None, power: Power = 0.5) -> Method:
    """SLDA: linear discriminant analysis (Hayes & Kanan, CVPRW 2020): class means, one covariance; nothing is trained.

    Departures: the paper's running covariance depends on the order of the images; here it is computed from sums,
    which do not. The paper adds 1e-4 of the identity to raw features; with few images much more is better, so the
    shrinkage is chosen by the likelihood of images that were held back. Features are transformed as FeCAM's are.

    Args:
        shrinkage: The weight of the identity (times the mean variance) in the covariance; by default chosen.
        power: Features are raised to this power and brought to length 1 (Tukey's transform); 1 leaves only the latter.
    """
    return closed_form(training, partial(LinearDiscriminants, shrinkage, power))
