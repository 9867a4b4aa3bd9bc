"""NCM: nearest class mean by cosine, on features that stay as they are."""

import torch
from torch import Tensor
from torch.nn import functional as F

from ssil.core.classes import ClassTable
from ssil.learning.feature_statistics import ClosedForm, closed_form
from ssil.learning.method import Method
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.nn.network import Output

SCALE = 50.0
"""The scores are so many cosines, which brings probabilities near to what they should be before any calibration."""


class CosineToMean(ClosedForm):
    """The cosine of an image's features to the mean of each class's unit-length features."""

    has_gram = False
    trace = ""
    directions: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("directions", torch.empty(0, 0))

    def shapes(self, classes: int, width: int) -> dict[str, tuple[int, ...]]:
        """As of all sums, and that of the directions."""
        return {**super().shapes(classes, width), "directions": (classes, width)}

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        """`SCALE` times the cosine to each class mean."""
        return SCALE * self.embed(output.features) @ self.directions.T

    def solve(self) -> None:
        """Bring the class means to length 1."""
        self.directions = F.normalize(self.sums_of().sums).to(self.directions)


@register()
def ncm(training: Training) -> Method:
    """NCM: nearest class mean, the cosine to the mean of a class's unit-length features; nothing is trained.

    SimpleCIL (Zhou et al., IJCV 2024) is this on a pretrained network. Each class has its own mean only: one that is
    forgotten leaves no trace.
    """
    return closed_form(training, CosineToMean)
