"""Closed-form scorers, fitted to made-up features in any order and in any tasks."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

import task_ends
from ssil.core.classes import ClassTable
from ssil.learning.feature_statistics import ClosedForm
from ssil.learning.registry import configure
from ssil.learning.snapshot import MAIN
from ssil.nn.heads import LinearHead
from ssil.nn.network import Output

WIDTH = 6


def draw(*shape: int, seed: int = 0) -> Tensor:
    """Features without negative values, as after a ReLU."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).abs()


def images(sizes: Sequence[int], seed: int = 0) -> tuple[Tensor, Tensor]:
    """Features and labels of classes of these sizes, each class around a mean of its own."""
    labels = torch.repeat_interleave(torch.tensor(sizes))
    return draw(len(labels), WIDTH, seed=seed) + 2 * draw(len(sizes), WIDTH, seed=seed + 1)[labels], labels


def scorer(method: str, **options: object) -> ClosedForm:
    """A method's scorer, in double precision."""
    made = configure(method, options=options).method.scorers[MAIN]()
    assert isinstance(made, ClosedForm)
    return made.place(torch.device("cpu"), torch.float64)


def fitted(make: Callable[[], ClosedForm], features: Tensor, labels: Tensor, tasks: Sequence[Tensor]) -> ClosedForm:
    """The scorer after tasks that bring the images at these indices; its classes are in order of arrival."""
    made, classes, arrived = make(), ClassTable(), list[int]()
    for indices in tasks:
        new = [label for label in dict.fromkeys(labels[indices].tolist()) if label not in arrived]
        arrived += new
        classes = classes.extend(["?"] * len(new))
        known = {label: position for position, label in enumerate(arrived)}
        renamed = [known.get(label, -1) for label in labels.tolist()]
        output = Output(features, features)
        made.fit(task_ends.end(classes, renamed, indices, [], output, LinearHead(features.shape[1])))
    return made


def at_once(make: Callable[[], ClosedForm], features: Tensor, labels: Tensor) -> ClosedForm:
    """The scorer after one task that brings all images, its classes in the order of the labels."""
    return fitted(make, features, labels, [labels.argsort(stable=True)])


def scores(made: ClosedForm, features: Tensor) -> Tensor:
    """The scores of features."""
    found: Tensor = made(Output(features, features), task_ends.table(made.counts.shape[1]))
    return found
