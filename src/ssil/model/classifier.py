"""A classifier as a value: what it knows, the pictures it keeps, and the update that makes the next one of it."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NamedTuple

import torch
from lightning_fabric import Fabric

from ssil import memory as memories
from ssil.bench import Bench
from ssil.data import Resident
from ssil.data.assemble import transform
from ssil.engine import learn, start
from ssil.errors import UserError
from ssil.evaluate import predict
from ssil.memory import Fixed, Memory
from ssil.model.pictures import Labelled, Picture, Pictures
from ssil.model.quiz import BUDGET, Marks, marks, set_aside
from ssil.model.settings import FIXED, ModelSettings, make_settings
from ssil.nn.pretrained import Pretrained
from ssil.randomness import Randomness
from ssil.scenario import Task
from ssil.snapshot import MAIN, Snapshot
from ssil.trainer import Pace, Progress, Watch
from ssil.types import Classes, Samples

LOOKED, MOST_EPOCHS = 3.0, 300
"""Seconds of a first look at how fast learning goes; epochs that nobody needs more of."""

SIZED = 200
"""How many pictures are looked at to tell how large they are."""

Groups = tuple[tuple[Picture, ...], ...]
"""Pictures by class, in order of arrival; exemplars the most valuable first."""


@dataclass(frozen=True)
class Classifier:
    """A snapshot, how it was made, and the pictures it keeps: exemplars to learn from, a quiz to be judged by."""

    settings: ModelSettings
    snapshot: Snapshot
    exemplars: Groups
    quiz: Groups

    @property
    def classes(self) -> Classes:
        """The class table."""
        return self.snapshot.classes


class Update(NamedTuple):
    """What an update has led to: the classifier, and its marks in one quiz before (of the known classes) and after."""

    classifier: Classifier
    before: Marks | None
    after: Marks | None
    learnt: int
    """Pictures that were trained on, without exemplars."""
    known: tuple[str, ...]
    """The classes that were known before."""
    epochs: int


def update(
    classifier: Classifier | None,
    settings: ModelSettings,
    arrived: Labelled,
    watch: Watch | None = None,
    init: Pretrained | None = None,
    minutes: float | None = None,
) -> Update:
    """Learn these pictures: new classes, more of known ones, or both.

    The first update may begin with the weights `init`; with `minutes` it has as many epochs as fit into that time.
    """
    known = classifier.classes if classifier else Classes()
    if not arrived:
        raise UserError("images: there is no picture to learn from")
    names = sorted({name for _, name in arrived} - set(known.names))
    if not classifier and len(names) < 2:
        raise UserError("images: a first update needs at least two classes, to tell them apart")
    classes = known.extend(names)
    room = _room(classifier, settings, arrived)
    train, quiz = set_aside(
        _unkept(arrived, classifier),
        classifier.quiz if classifier else (),
        classes.names,
        int(BUDGET * room),
        Randomness(settings.seed).within(classes.task),
    )
    if not train:
        raise UserError("images: the model keeps all of these pictures already; bring others")
    desk = _Desk.of(settings, classes, train, classifier.exemplars if classifier else ())
    lesson = _Lesson(classifier, desk, init)
    paced = lesson.within(settings, 60 * minutes) if minutes else settings
    snapshot = lesson.learnt(paced, watch or _unwatched)
    exemplars = desk.kept(Fixed(room - sum(map(len, quiz))))
    made = Classifier(settings, snapshot, _shrunk(exemplars, settings), _shrunk(quiz, settings))
    before = _marks(classifier, made.quiz) if classifier else None
    epochs = paced.later_epochs if classifier else paced.epochs
    return Update(made, before, _marks(made, made.quiz), len(train), known.names, epochs)


def _unkept(arrived: Labelled, classifier: Classifier | None) -> Labelled:
    """Without the exemplars, which are learnt again anyway; who adds to a folder brings them along."""
    kept = {picture.known_as for group in classifier.exemplars for picture in group} if classifier else set()
    return [(picture, name) for picture, name in arrived if picture.known_as not in kept]


def _room(classifier: Classifier | None, settings: ModelSettings, arrived: Labelled) -> int:
    """Pictures to keep in all: as many as was said, or as the megabytes have room for, by the size of some of them."""
    if settings.memory_mb is None:
        return settings.memory
    kept = [picture for group in classifier.exemplars for picture in group] if classifier else []
    step = max(1, (len(arrived) + len(kept)) // SIZED)
    (some,) = _shrunk([[*(picture for picture, _ in arrived), *kept][::step]], settings)
    return max(1, int(settings.memory_mb * 1e6 / fmean(len(picture.read()) for picture in some)))


def _shrunk(groups: Iterable[Sequence[Picture]], settings: ModelSettings) -> Groups:
    """Copies to keep, with twice the pixels that are looked at: room for crops and for a finer look later."""
    look = settings.look()
    return tuple(tuple(picture.shrunk(2 * look.size, look.channels) for picture in group) for group in groups)


@dataclass(frozen=True)
class _Desk:
    """Where an update is learnt: the pictures that arrived, then the exemplars, as one set of samples."""

    classes: Classes
    pictures: Pictures
    samples: Samples
    memory: Memory
    arrived: int
    random: Randomness

    @classmethod
    def of(cls, settings: ModelSettings, classes: Classes, arrived: Labelled, exemplars: Groups) -> "_Desk":
        number = {name: label for label, name in enumerate(classes.names)}
        labels = [number[name] for _, name in arrived]
        labels += [label for label, group in enumerate(exemplars) for _ in group]
        pictures = Pictures((*(picture for picture, _ in arrived), *(one for group in exemplars for one in group)))
        sizes = [len(group) for group in exemplars]
        kept = torch.arange(len(arrived), len(pictures)).split(sizes) if sizes else ()
        samples = pictures.samples(labels, settings.look())
        return cls(classes, pictures, samples, Memory(tuple(kept)), len(arrived), Randomness(settings.seed))

    def kept(self, room: Fixed) -> Groups:
        """The exemplars after the update."""
        arrived = memories.by_class(torch.arange(self.arrived), self.samples.labels)
        select = memories.random_selection(self.random)
        chosen = memories.update(self.memory, arrived, self.classes, room, select)
        return tuple(tuple(self.pictures.members[index] for index in group.tolist()) for group in chosen.exemplars)


@dataclass(frozen=True)
class _Lesson:
    """What is to be learnt, and from where."""

    classifier: Classifier | None
    desk: _Desk
    init: Pretrained | None

    def learnt(self, settings: ModelSettings, watch: Watch) -> Snapshot:
        method, bench = settings.configured().method, bench_for(settings, self.desk.samples, self.init)
        task = Task(self.desk.classes, torch.arange(self.desk.arrived))
        previous = self.classifier.snapshot if self.classifier else None
        progress = start(method, previous, task, bench)
        return learn(method, previous, self.desk.memory, task, bench, progress, watch)

    def within(self, settings: ModelSettings, seconds: float) -> ModelSettings:
        """The settings with as many epochs as fit, after a look at how fast it goes."""
        began, share = list[float](), list[float]()

        def look(_: Progress, pace: Pace) -> None:
            began.append(time.monotonic())
            share.append(pace.done)
            if began[-1] - began[0] > LOOKED:
                raise _SeenEnoughError

        with suppress(_SeenEnoughError):
            self.learnt(settings, look)
        if len(began) < 2 or share[-1] == share[0]:
            return settings
        name = "later_epochs" if self.classifier else "epochs"
        whole = (began[-1] - began[0]) / (share[-1] - share[0])
        fitting = max(1, min(MOST_EPOCHS, int(getattr(settings, name) * seconds / whole)))
        return settings.model_copy(update={name: fitting})


class _SeenEnoughError(Exception):
    pass


def _unwatched(progress: Progress, pace: Pace) -> None:
    pass


def bench_for(settings: ModelSettings, samples: Samples | None = None, init: Pretrained | None = None) -> Bench:
    """Where the classifier works; without samples it can only look at others."""
    look = settings.look()
    nothing = Samples(Resident(torch.empty(0, look.size, look.size, look.channels, dtype=torch.uint8)), torch.empty(0))
    fabric = Fabric(accelerator="cuda" if torch.cuda.is_available() else "cpu", devices=1)
    random = Randomness(settings.seed)
    return Bench(fabric, samples or nothing, transform(look), random, settings.backbone, init=init)


def _marks(classifier: Classifier, quiz: Groups) -> Marks | None:
    """How it does in the quiz of the classes that it knows; None if that is empty."""
    known = quiz[: classifier.classes.seen]
    labels = [label for label, group in enumerate(known) for _ in group]
    if not labels:
        return None
    pictures = Pictures(tuple(picture for group in known for picture in group))
    samples = pictures.samples(labels, classifier.settings.look())
    found = predict(classifier.snapshot, torch.arange(len(labels)), samples, bench_for(classifier.settings))[MAIN]
    return marks(found, classifier.classes.names, classifier.classes.old)


def judged(classifier: Classifier) -> Marks | None:
    """How it does in its own quiz."""
    return _marks(classifier, classifier.quiz)


class Guess(NamedTuple):
    """What a classifier says of a picture: names and probabilities, the most likely first."""

    name: str
    ranking: tuple[tuple[str, float], ...]


@torch.inference_mode()
def guesses(classifier: Classifier, pictures: Sequence[Picture], top: int = 5) -> Iterator[Guess]:
    """The most likely classes of each picture, in order."""
    samples = Pictures(tuple(pictures)).samples([0] * len(pictures), classifier.settings.look())
    snapshot, bench = classifier.snapshot, bench_for(classifier.settings)
    scorer, names = snapshot.scorers[MAIN], classifier.classes.names
    for part, output in bench.looks(snapshot.network, torch.arange(len(pictures)), samples):
        chances, order = scorer.probabilities(snapshot.scores(output)).topk(min(top, len(names)))
        for index, row, ranks in zip(part.tolist(), chances.tolist(), order.tolist(), strict=True):
            yield Guess(pictures[index].name, tuple((names[c], p) for c, p in zip(ranks, row, strict=True)))


def changed(settings: ModelSettings, given: Mapping[str, Any]) -> ModelSettings:
    """The settings with what an update was told anew."""
    for name in FIXED:
        if given.get(name, own := getattr(settings, name)) != own:
            raise UserError(f"{name}: the model was made with {own!r}, which can't be changed; make another model")
    return make_settings({**settings.model_dump(), **given})
