"""Probabilities that mean something: scores are divided by a number that is fitted to the quiz."""

import torch
from torch import Tensor

from ssil.core.classes import ClassTable
from ssil.learning.snapshot import Scorer
from ssil.nn.network import Output

ENOUGH = 50
"""Pictures in a quiz from which on a temperature is fitted."""
TEMPERATURES = [10 ** (step / 50) for step in range(-50, 51)]
"""From a tenth to ten."""


class Tempered(Scorer):
    """Another scorer's scores, with probabilities at a temperature; the most likely class stays the same."""

    def __init__(self, scorer: Scorer, temperature: float) -> None:
        super().__init__()
        self.scorer, self.temperature = scorer, temperature

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        """The other's."""
        scores: Tensor = self.scorer(output, classes)
        return scores

    def probabilities(self, scores: Tensor) -> Tensor:
        """The other's, of scores that are divided first."""
        return self.scorer.probabilities(scores / self.temperature)


def temperature(scorer: Scorer, scores: Tensor, labels: Tensor) -> float:
    """The one with which probabilities fit best (Guo et al. 2017): least cross-entropy; 1 of too few pictures.

    Of n pictures, one in n + 2 counts as wrong (Platt 1999): that all are right is no proof that the next one is.
    """
    if len(labels) < ENOUGH:
        return 1.0
    scores, rows, doubt = scores.double().cpu(), torch.arange(len(labels)), 1 / (len(labels) + 2)

    def loss(one: float) -> float:
        right = scorer.probabilities(scores / one)[rows, labels].clamp(1e-9, 1 - 1e-9)
        return -float((1 - doubt) * right.log().mean() + doubt * (1 - right).log().mean())

    return min([1.0, *TEMPERATURES], key=loss)
