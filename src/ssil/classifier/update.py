"""What an update learns from, and how long."""

import time
from contextlib import suppress
from dataclasses import dataclass

import torch

from ssil.classifier.classifier_settings import ModelSettings
from ssil.classifier.feature_extraction import Sight
from ssil.classifier.images import Groups, Labelled, Picture
from ssil.core.classes import ClassTable
from ssil.core.randomness import Randomness
from ssil.core.samples import Samples
from ssil.learning import memory as memories
from ssil.learning.engine import learn, start
from ssil.learning.memory import FixedBudget, Memory
from ssil.learning.snapshot import Snapshot
from ssil.learning.task import Pace, Progress, Task, Watch

PROBE_SECONDS, MOST_EPOCHS = 3.0, 300
"""Seconds of a first look at how fast learning goes; epochs that nobody needs more of."""


@dataclass(frozen=True)
class Desk:
    """Where an update is learnt: the pictures that arrived, then the exemplars, as one set of samples."""

    classes: ClassTable
    pictures: tuple[Picture, ...]
    samples: Samples
    memory: Memory
    arrived: int

    @classmethod
    def of(cls, sight: Sight, classes: ClassTable, arrived: Labelled, exemplars: Groups) -> "Desk":
        """With these pictures, as they are seen."""
        number = {name: label for label, name in enumerate(classes.names)}
        labels = [number[name] for _, name in arrived]
        labels += [label for label, group in enumerate(exemplars) for _ in group]
        new, *old = sight.seen([[picture for picture, _ in arrived], *exemplars])
        pictures = (*new, *(picture for group in old for picture in group))
        kept = torch.arange(len(new), len(pictures)).split([len(group) for group in old]) if old else ()
        return cls(classes, pictures, sight.samples(pictures, labels), Memory(tuple(kept)), len(new))

    def kept(self, budget: FixedBudget, random: Randomness) -> Groups:
        """The exemplars after the update."""
        arrived = memories.by_class(torch.arange(self.arrived), self.samples.labels)
        chosen = memories.update(self.memory, arrived, self.classes, budget, memories.random_selection(random))
        return tuple(tuple(self.pictures[index] for index in group.tolist()) for group in chosen.exemplars)


@dataclass(frozen=True)
class Lesson:
    """What is to be learnt, and from where."""

    previous: Snapshot | None
    desk: Desk
    sight: Sight

    def learnt(self, settings: ModelSettings, watch: Watch) -> Snapshot:
        """The snapshot after it."""
        method, context = settings.configured().method, self.sight.context(self.desk.samples)
        task = Task(self.desk.classes, torch.arange(self.desk.arrived))
        previous = self.sight.inner(self.previous) if self.previous else None
        progress = start(method, previous, task, context)
        return self.sight.whole(learn(method, previous, self.desk.memory, task, context, progress, watch))

    def within(self, settings: ModelSettings, seconds: float) -> ModelSettings:
        """The settings with as many epochs as fit, after a look at how fast it goes."""
        began, share = list[float](), list[float]()

        def look(_: Progress, pace: Pace) -> None:
            began.append(time.monotonic())
            share.append(pace.done)
            if began[-1] - began[0] > PROBE_SECONDS:
                raise _SeenEnoughError

        with suppress(_SeenEnoughError):
            self.learnt(settings, look)
        if len(began) < 2 or share[-1] == share[0]:
            return settings
        name = "later_epochs" if self.previous else "epochs"
        whole = (began[-1] - began[0]) / (share[-1] - share[0])
        fitting = max(1, min(MOST_EPOCHS, int(getattr(settings, name) * seconds / whole)))
        return settings.model_copy(update={name: fitting})


class _SeenEnoughError(Exception):
    pass
