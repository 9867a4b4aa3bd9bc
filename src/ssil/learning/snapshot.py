"""Frozen models and their scorers, and the views of a model in training that losses, stages and scorers are given."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn

from ssil.core.classes import ClassTable
from ssil.core.randomness import Randomness
from ssil.learning.batches import Pool
from ssil.learning.memory import Memory
from ssil.nn.heads import Head
from ssil.nn.network import Network, Output, folded

MAIN = "main"
"""The name of the scorer whose accuracy is a method's result."""


class Scorer(nn.Module):
    """Turns a network's output into one score per seen class, without access to labels or task numbers.

    All that a scorer learns must be a parameter or a buffer: only these are saved and restored with its snapshot. This
    base class returns the logits and learns nothing.
    """

    per_class: ClassVar[tuple[str, ...]] = ()
    """The names of the buffers that have one row per seen class."""
    float64: ClassVar[tuple[str, ...]] = ()
    """The names of the buffers that are in double precision, whatever the run's precision is."""
    trace: ClassVar[str] = ""
    """What remains of a class after `forget`; empty if nothing does."""

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        """Return the scores (B, seen) of a batch."""
        return output.logits

    def probabilities(self, scores: Tensor) -> Tensor:
        """Return the class probabilities that the scores stand for."""
        return scores.softmax(1)

    def fit(self, state: "TaskState") -> None:
        """Learn from a task's training images, once its phases are done. Later tasks start with the fitted scorer."""

    def forget(self, label: int) -> None:
        """Remove a class: its row of every buffer that has one per class."""
        for name in self.per_class:
            rows = self.get_buffer(name)
            setattr(self, name, torch.cat([rows[:label], rows[label + 1 :]]))

    def place(self, device: torch.device, dtype: torch.dtype) -> Self:
        """Move the scorer to a device and a floating-point type, except for its `float64` buffers' type."""
        exact = {name: self.get_buffer(name) for name in self.float64}
        self.to(device=device, dtype=dtype)
        for name, buffer in exact.items():
            setattr(self, name, buffer.to(device, torch.float64))
        return self

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Set the parameters and buffers to a saved state, whose shapes may differ from the current ones."""
        for name, own in self.state_dict(keep_vars=True).items():
            own.data = tensors[name].to(own)


@dataclass(frozen=True)
class Snapshot:
    """A frozen network, the classes that it knows, and its scorers by name."""

    network: Network
    classes: ClassTable
    scorers: Mapping[str, Scorer]

    def scores(self, output: Output, scorer: str = MAIN) -> Tensor:
        """Return the scores (B, seen) of one scorer for an output of the network."""
        scores: Tensor = self.scorers[scorer](output, self.classes)
        return scores


def freeze(network: Network, classes: ClassTable, scorers: Mapping[str, Scorer]) -> Snapshot:
    """Return a snapshot with copies of the network and the scorers, which may be trained further."""
    kept = {name: deepcopy(scorer).requires_grad_(False) for name, scorer in scorers.items()}
    return Snapshot(network.clone(), classes, kept)


def without(snapshot: Snapshot, label: int) -> Snapshot:
    """Return a copy of the snapshot without a class: without its rows in the head and in what its scorers learnt."""
    network, scorers = snapshot.network.clone(), {name: deepcopy(scorer) for name, scorer in snapshot.scorers.items()}
    network.head = network.head.without(label)
    for scorer in scorers.values():
        scorer.forget(label)
    return Snapshot(network, snapshot.classes.without(label), scorers)


class TeacherOutput(NamedTuple):
    """A teacher's output for a batch, and the scores of its main scorer."""

    output: Output
    """Logits and features; the logits are over the classes that the teacher knows."""
    scores: Tensor
    """(B, classes that the teacher knows); without a scorer of the method's own, the logits"""


class Teacher:
    """A snapshot for distillation: batch norm folded into the convolutions, no gradients. Derived, never saved."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.network = folded(snapshot.network)

    @torch.no_grad()
    def __call__(self, images: Tensor) -> TeacherOutput:
        """Return the output and the scores for a batch of images."""
        output = self.network(images)
        return TeacherOutput(output, self.snapshot.scores(output))


@dataclass(frozen=True)
class Step:
    """The input of a loss: one mini-batch, the student's output and the teachers' outputs for it."""

    labels: Tensor
    """(B,) the classes, numbered in order of arrival"""
    output: Output
    """The student's logits (B, seen), features and stage maps."""
    classes: ClassTable
    """All classes seen, and the task of each; those from `classes.old` on are new."""
    teachers: Mapping[str, TeacherOutput]
    """By name, the output of each teacher of the phase: `teachers["old"].scores` are the old model's scores."""
    counts: Tensor
    """(seen,) the number of training images of each class in this phase, exemplars included"""
    head: Head
    """The student's head, for a scale or cosines that can't be read from the logits."""
    scorer: Scorer
    """The student's main scorer; see `scores`."""
    indices: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.long))
    """(B,) the images' indices among the training samples, on the CPU"""
    exemplars: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.bool))
    """(B,) whether an image is an exemplar; the others are the task's own, of new or of known classes"""
    replayed: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.bool))
    """(B,) whether an image is in the batch as a replayed one (`Replay`), beside the pass over the task's images"""
    stored: Mapping[str, Tensor] = field(default_factory=dict)
    """By name, what the memory keeps with the images (B, ...); NaN for images with which nothing is kept. Empty in a
    task without exemplars."""

    @property
    def scores(self) -> Tensor:
        """The scores of the student's main scorer."""
        scores: Tensor = self.scorer(self.output, self.classes)
        return scores


@dataclass(frozen=True)
class TaskState:
    """A task in progress, for stages, hooks and `Scorer.fit`, which may change network and scorers in place."""

    network: Network
    scorers: Mapping[str, Scorer]
    classes: ClassTable
    pool: Pool
    """The task's training images and the exemplars."""
    previous: Snapshot | None
    """The model before this task."""
    random: Randomness
    evaluate: Callable[[Network, Tensor], Output]
    """(network, indices of training images) -> its output under the test transform, without stage maps"""
    memory: Memory = field(default_factory=Memory)
    """The exemplars, and what is stored with them."""

    def outputs(self, indices: Tensor) -> Output:
        """Return the current network's output for training images under the test transform."""
        return self.evaluate(self.network, indices)

    def features(self, indices: Tensor) -> Tensor:
        """Return the current network's features of training images; faster than `outputs` with many classes."""
        return self.evaluate(self.network.headless(), indices).features
