"""A model at rest: what is evaluated, saved and asked for predictions, and the next task's teacher."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ssil.nn import Network, folded
from ssil.types import Classes, Output, Scorer

MAIN = "main"
"""The name of the scorer that a method is judged by."""


@dataclass(frozen=True)
class Snapshot:
    """A frozen network, the classes it knows, and the scorers that turn its output into scores."""

    network: Network
    classes: Classes
    scorers: Mapping[str, Scorer]

    def scores(self, output: Output, scorer: str = MAIN) -> Tensor:
        """Scores (B, seen) of a batch that the network has seen."""
        scores: Tensor = self.scorers[scorer](output, self.classes)
        return scores


class View(NamedTuple):
    """What a teacher says of a batch: its raw output, and its scores after the scorer."""

    output: Output
    scores: Tensor


class Teacher:
    """A snapshot made quick: batch norm folded into the convolutions, no gradients. Derived, never saved."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.network = folded(snapshot.network)

    @torch.no_grad()
    def __call__(self, images: Tensor) -> View:
        """What the teacher says of these images."""
        output = self.network(images)
        return View(output, self.snapshot.scores(output))


@dataclass(frozen=True)
class Step:
    """What a loss may look at: one mini-batch, the student's output, and what the teachers say of it."""

    labels: Tensor
    output: Output
    classes: Classes
    teachers: Mapping[str, View]
    counts: Tensor
    """Training images of each class in this task (new data and exemplars)."""
