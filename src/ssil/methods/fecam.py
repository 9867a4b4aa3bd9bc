"""FeCAM: heterogeneous class distributions (Goswami et al., NeurIPS 2023)."""

from functools import partial
from typing import Annotated, Literal, Self

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from ssil.core.classes import ClassTable
from ssil.learning.feature_statistics import LinearClosedForm, Sums, closed_form, packed, unpacked, without_row
from ssil.learning.method import Method
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.learning.shrinkage import correlation_factor
from ssil.nn.network import Output

SCALE = 160.0
"""The scores are minus so many halves of squared distances: probabilities come near to what they should be."""


class SharedMahalanobis(LinearClosedForm):
    """Minus half the squared Mahalanobis distance to each class mean, up to a term that all classes share."""

    shrinkage: float

    def __init__(self, shrinkage: float = 1.0, power: float = 0.5) -> None:
        super().__init__(shrinkage, power)

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        """As the distance is of unit-length vectors to a unit-length mean m: m' C^-1 x - m' C^-1 m / 2."""
        return SCALE * self.linear(output.features)

    def solve(self) -> None:
        """Invert the correlation matrix of all images."""
        found = self.sums_of()
        self.set_linear(F.normalize(found.means), correlation_factor(found.covariance(), self.shrinkage))


class ClassMahalanobis(SharedMahalanobis):
    """The same with a covariance of each class's own."""

    float64 = ("sums", "grams", "class_grams")
    statistics = ("counts", "sums", "grams", "images", "class_grams")
    has_gram = False
    trace = ""
    class_grams: Tensor
    whitening: Tensor

    def __init__(self, shrinkage: float = 1.0, power: float = 0.5) -> None:
        super().__init__(shrinkage, power)
        self.register_buffer("class_grams", torch.zeros(0, 0, dtype=torch.float64))
        self.register_buffer("whitening", torch.empty(0, 0, 0))

    def shapes(self, classes: int, width: int) -> dict[str, tuple[int, ...]]:
        """The same with each class's own Gram matrix."""
        return {**super().shapes(classes, width), "class_grams": (classes, width * (width + 1) // 2)}

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        """`SCALE` times -(x - m)' C_k^-1 (x - m) / 2 for each class k, by a square root of C_k^-1."""
        vectors, pairs = self.embed(output.features), zip(self.weight, self.whitening, strict=True)
        distances = [((vectors - mean) @ root).square().sum(1) for mean, root in pairs]
        return -SCALE / 2 * torch.stack(distances, 1)

    def emptied(self) -> Self:
        """Return a copy without statistics."""
        copy = super().emptied()
        copy.class_grams = copy.class_grams[:0]
        return copy

    def add(self, vectors: Tensor, labels: Tensor, classes: int) -> None:
        """Add to each class's own Gram matrix too."""
        super().add(vectors, labels, classes)
        size = vectors.shape[1] * (vectors.shape[1] + 1) // 2
        new = classes - len(self.class_grams)
        self.class_grams = torch.cat([self.class_grams.view(-1, size), self.class_grams.new_zeros(new, size)])
        for label in labels.unique().tolist():
            rows = vectors[labels == label]
            self.class_grams[label] += packed(rows.T @ rows)

    def solve(self) -> None:
        """Keep the unit-length means, and a square root of every inverse correlation matrix."""
        found, roots = self.sums_of(), list[Tensor]()
        for count, total, gram in zip(found.counts, found.sums, self.class_grams, strict=True):
            own = Sums(count[None], total[None], unpacked(gram), count)
            factor = correlation_factor(own.covariance(), self.shrinkage)
            identity = torch.eye(len(factor)).to(factor)
            roots.append(torch.linalg.solve_triangular(factor, identity, upper=False).T.to(self.whitening))
        self.weight, self.whitening = F.normalize(found.means).to(self.weight), torch.stack(roots)

    def forget(self, label: int) -> None:
        """Remove the class's own Gram matrix with all else that it has."""
        self.class_grams = without_row(self.class_grams, label)
        super().forget(label)


@register()
def fecam(
    training: Training,
    *,
    covariance: Literal["shared", "full"] = "shared",
    shrinkage: Annotated[float, Field(gt=0)] = 1.0,
    power: Annotated[float, Field(gt=0, le=1)] = 0.5,
) -> Method:
    """FeCAM: Mahalanobis distance to class means (Goswami et al., NeurIPS 2023); nothing is trained.

    Departures: one covariance for all classes by default, since with few images it was more accurate, and a covariance
    for each class takes 4 L^2 bytes of sums and 4 L^2 of inverses for L features (13 MB a class for 1,280). Vectors
    have length 1 before they are summed, too. A forgotten class leaves no trace if the covariances are "full".

    Args:
        covariance: One "shared" by all classes, or the "full" method: one for each class.
        shrinkage: What of the mean variance is added to the variances, and of the mean covariance to the others, gamma;
            the paper has 1, and 100 for few images.
        power: Features are raised to this power (Tukey's transform), for features after a ReLU.
    """
    scorer = {"shared": SharedMahalanobis, "full": ClassMahalanobis}[covariance]
    return closed_form(training, partial(scorer, shrinkage, power))
