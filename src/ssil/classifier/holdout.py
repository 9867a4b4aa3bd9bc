"""Pictures that are never trained on: what an update has done to each class is read off them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from ssil.classifier.images import Labelled, Picture
from ssil.core.randomness import Randomness
from ssil.learning.memory import FixedBudget
from ssil.learning.metrics import Predictions, calibration_error, score_gap

MOST, SHARE, LEAST = 10, 5, 5
BUDGET = 0.2
"""The part of all kept pictures that a quiz may take."""


def set_aside(
    arrived: Labelled, held: Sequence[Sequence[Picture]], names: Sequence[str], budget: int, random: Randomness
) -> tuple[Labelled, list[tuple[Picture, ...]]]:
    """What to train on, and the quiz of each class: a fifth of a new class, at most ten, none of under five.

    `held` is the quiz of the classes that were known before; where the room is too small for all, each has less.
    """
    groups: dict[str, list[Picture]] = {name: [] for name in names}
    for picture, name in arrived:
        groups[name].append(picture)
    drawn = [*held, *(_drawn(groups[name], random.at("quiz", name)) for name in names[len(held) :])]
    quiz = [
        tuple(group[:size]) for group, size in zip(drawn, FixedBudget(budget).quotas([*map(len, drawn)]), strict=True)
    ]
    taken = {picture.known_as for group in (*held, *quiz) for picture in group}
    return [(picture, name) for picture, name in arrived if picture.known_as not in taken], quiz


def _drawn(members: Sequence[Picture], generator: torch.Generator) -> list[Picture]:
    """Some of a class, by chance alone, not by the order of its pictures."""
    count = min(MOST, len(members) // SHARE) if len(members) >= LEAST else 0
    ordered = sorted(members, key=lambda picture: picture.digest)
    return [ordered[index] for index in torch.randperm(len(ordered), generator=generator)[:count].tolist()]


class Mark(NamedTuple):
    """Of how many pictures of a class how many were told right."""

    right: int
    of: int


@dataclass(frozen=True)
class Marks:
    """How a model does in a quiz, class by class in the order of their arrival; without those that have no picture."""

    classes: Mapping[str, Mark]
    calibration_error: float
    score_gap: float | None
    """Of new over old classes; None where all are new, or none."""

    def accuracy(self, names: Iterable[str]) -> float | None:
        """In percent, over the pictures of these classes; None if there are none."""
        found = [self.classes[name] for name in names if name in self.classes]
        return 100 * sum(mark.right for mark in found) / sum(mark.of for mark in found) if found else None


def marks(predictions: Predictions, names: Sequence[str], old: int) -> Marks:
    """The marks of these predictions."""
    counts, rights = (
        torch.bincount(labels, minlength=len(names)).tolist()
        for labels in (predictions.labels, predictions.labels[predictions.correct])
    )
    found = {name: Mark(right, of) for name, right, of in zip(names, rights, counts, strict=True) if of}
    gap = score_gap(predictions) if 0 < old < len(names) else None
    return Marks(found, calibration_error(predictions), gap)
