"""Temperature scaling (Guo et al., ICML 2017): scores are divided by a number that is fitted to the hold-out set."""

import torch
from torch import Tensor

from ssil.core.classes import ClassTable
from ssil.learning.snapshot import Scorer
from ssil.nn.network import Output

MIN_IMAGES = 50
"""With fewer images in the hold-out set, the temperature stays 1."""
TEMPERATURES = [10 ** (step / 50) for step in range(-50, 51)]
"""From 0.1 to 10, on a logarithmic scale."""


class TemperatureScaled(Scorer):
    """A scorer whose probabilities are taken at a temperature; the scores and their order stay the same."""

    def __init__(self, scorer: Scorer, temperature: float) -> None:
        super().__init__()
        self.scorer, self.temperature = scorer, temperature

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        """Return the scores of the wrapped scorer."""
        scores: Tensor = self.scorer(output, classes)
        return scores

    def probabilities(self, scores: Tensor) -> Tensor:
        """Return the probabilities of the wrapped scorer for `scores` divided by the temperature."""
        return self.scorer.probabilities(scores / self.temperature)


def fit_temperature(scorer: Scorer, scores: Tensor, labels: Tensor) -> float:
    """Return the temperature with the least cross-entropy over labelled scores; 1 for fewer than `MIN_IMAGES`.

    Targets are smoothed after Platt (1999): of n images, 1 / (n + 2) counts as wrong, since n correct predictions
    don't prove that the next one is correct too.
    """
    if len(labels) < MIN_IMAGES:
        return 1.0
    scores, rows, doubt = scores.double().cpu(), torch.arange(len(labels)), 1 / (len(labels) + 2)

    def loss(temperature: float) -> float:
        correct = scorer.probabilities(scores / temperature)[rows, labels].clamp(1e-9, 1 - 1e-9)
        return -float((1 - doubt) * correct.log().mean() + doubt * (1 - correct).log().mean())

    return min([1.0, *TEMPERATURES], key=loss)
