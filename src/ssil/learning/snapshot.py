"""A model at rest, what turns its output into scores, and what losses and stages may look at while it learns."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from ssil.core.classes import ClassTable
from ssil.core.randomness import Randomness
from ssil.learning.batches import Pool
from ssil.nn.heads import Head
from ssil.nn.network import Network, Output, folded

MAIN = "main"
"""The name of the scorer that a method is judged by."""


class Scorer(nn.Module):
    """Turns a network's output into one score per seen class. Never sees a label or a task id.

    What it has learnt lives in its parameters and buffers, so that it is saved and restored with its snapshot.
    """

    per_class: ClassVar[tuple[str, ...]] = ()
    """The buffers that have a row for each class seen."""

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        """Scores (B, seen): the plain logits, unless a method knows better."""
        return output.logits

    def probabilities(self, scores: Tensor) -> Tensor:
        """Scores as probabilities."""
        return scores.softmax(1)

    def fit(self, work: "Work") -> None:
        """Learn from a task's training images, at its end; a scorer is carried over from task to task."""

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over a saved state, whose shapes may depend on the classes seen."""
        for name, own in self.state_dict(keep_vars=True).items():
            own.data = tensors[name].to(own)


@dataclass(frozen=True)
class Snapshot:
    """A frozen network, the classes it knows, and the scorers that turn its output into scores."""

    network: Network
    classes: ClassTable
    scorers: Mapping[str, Scorer]

    def scores(self, output: Output, scorer: str = MAIN) -> Tensor:
        """Scores (B, seen) of a batch that the network has seen."""
        scores: Tensor = self.scorers[scorer](output, self.classes)
        return scores


def without(snapshot: Snapshot, label: int) -> Snapshot:
    """A snapshot that has forgotten a class: it has no score any more, nor anything that was learnt for it alone."""
    network, scorers = snapshot.network.clone(), {name: deepcopy(scorer) for name, scorer in snapshot.scorers.items()}
    network.head = network.head.without(label)
    for scorer in scorers.values():
        for name in scorer.per_class:
            rows = scorer.get_buffer(name)
            setattr(scorer, name, torch.cat([rows[:label], rows[label + 1 :]]))
    return Snapshot(network, snapshot.classes.without(label), scorers)


def freeze(network: Network, classes: ClassTable, scorers: Mapping[str, Scorer]) -> Snapshot:
    """A snapshot of a model that goes on learning."""
    kept = {name: deepcopy(scorer).requires_grad_(False) for name, scorer in scorers.items()}
    return Snapshot(network.clone(), classes, kept)


class TeacherOutput(NamedTuple):
    """What a teacher says of a batch: its raw output, and its scores after the scorer."""

    output: Output
    scores: Tensor


class Teacher:
    """A snapshot made quick: batch norm folded into the convolutions, no gradients. Derived, never saved."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.network = folded(snapshot.network)

    @torch.no_grad()
    def __call__(self, images: Tensor) -> TeacherOutput:
        """What the teacher says of these images."""
        output = self.network(images)
        return TeacherOutput(output, self.snapshot.scores(output))


@dataclass(frozen=True)
class Step:
    """What a loss may look at: one mini-batch, the student's output, and what the teachers say of it."""

    labels: Tensor
    output: Output
    classes: ClassTable
    teachers: Mapping[str, TeacherOutput]
    counts: Tensor
    """Images of each class that the phase trains on (new data and exemplars)."""
    head: Head
    """The student's, for a scale or cosines that the logits don't show."""
    scorer: Scorer

    @property
    def scores(self) -> Tensor:
        """The student's output after its scorer."""
        scores: Tensor = self.scorer(self.output, self.classes)
        return scores


@dataclass(frozen=True)
class Work:
    """A task in progress, as a stage, a hook or a scorer sees it; it may change the network and scorers in place."""

    network: Network
    scorers: Mapping[str, Scorer]
    classes: ClassTable
    pool: Pool
    previous: Snapshot | None
    """The model of the task before."""
    random: Randomness
    look: Callable[[Network, Tensor], Output]
    """What a network says of training images (by index) under the test transform; no stage maps."""

    def outputs(self, indices: Tensor) -> Output:
        """What the network, as it is now, says of training images."""
        return self.look(self.network, indices)

    def features(self, indices: Tensor) -> Tensor:
        """Their features alone, whose cost does not grow with the classes."""
        return self.look(self.network.headless(), indices).features
