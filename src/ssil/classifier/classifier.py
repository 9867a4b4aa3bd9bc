"""A classifier as a value: what it knows, the pictures it keeps, and the update that makes the next one of it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, NamedTuple

import torch

from ssil.classifier.classifier_settings import FIXED, ModelSettings, make_settings
from ssil.classifier.feature_extraction import bench_for, sight_of, unwatched
from ssil.classifier.holdout import BUDGET, Marks, marks, set_aside
from ssil.classifier.images import Groups, Labelled, Picture, Pictures
from ssil.classifier.temperature_scaling import Tempered, temperature
from ssil.classifier.update import Desk, Lesson
from ssil.core.classes import ClassTable
from ssil.core.errors import UserError
from ssil.core.randomness import Randomness
from ssil.learning.evaluation import predict
from ssil.learning.execution import ExecutionContext
from ssil.learning.memory import FixedBudget
from ssil.learning.snapshot import MAIN, Snapshot
from ssil.learning.task import Watch
from ssil.nn.pretrained import Pretrained

SIZED = 200
"""How many pictures are looked at to tell how large they are."""


@dataclass(frozen=True)
class Classifier:
    """A snapshot, how it was made, and the pictures it keeps: exemplars to learn from, a quiz to be judged by."""

    settings: ModelSettings
    snapshot: Snapshot
    exemplars: Groups
    quiz: Groups
    temperature: float = 1.0
    """What scores are divided by before they become probabilities."""

    @property
    def answering(self) -> Snapshot:
        """The snapshot, with probabilities at its temperature."""
        main = Tempered(self.snapshot.scorers[MAIN], self.temperature)
        return replace(self.snapshot, scorers={**self.snapshot.scorers, MAIN: main})

    @property
    def classes(self) -> ClassTable:
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
    plain: Marks | None
    """What the marks after it would be at a temperature of 1."""


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
    classifier = _relabelled(classifier, arrived) if classifier else None
    known, previous = (classifier.classes, classifier.snapshot) if classifier else (ClassTable(), None)
    classes, watch = _extended(known, arrived), watch or unwatched
    sight, random = sight_of(settings, previous, init, watch), Randomness(settings.seed)
    budget = _room(classifier, settings, arrived)
    train, quiz = set_aside(
        _unkept(arrived, classifier),
        classifier.quiz if classifier else (),
        classes.names,
        int(BUDGET * budget),
        random.within(classes.task),
    )
    if not train:
        raise UserError("images: the model keeps all of these pictures already; bring others")
    judges = sight.seen(quiz)
    desk = Desk.of(sight, classes, train, classifier.exemplars if classifier else ())
    lesson = Lesson(previous, desk, sight)
    paced = lesson.within(settings, 60 * minutes) if minutes else settings
    snapshot = lesson.learnt(paced, watch)
    exemplars = desk.kept(FixedBudget(budget - sum(map(len, judges))), random)
    plain = Classifier(settings, snapshot, _shrunk(exemplars, settings), _shrunk(judges, settings))
    made = replace(plain, temperature=_fitted(plain))
    before = _marks(classifier, made.quiz) if classifier else None
    epochs = paced.later_epochs if classifier else paced.epochs
    return Update(made, before, judged(made), len(train), known.names, epochs, judged(plain))


def _extended(known: ClassTable, arrived: Labelled) -> ClassTable:
    """The class table with those that arrive for the first time."""
    names = sorted({name for _, name in arrived} - set(known.names))
    if not arrived:
        raise UserError("images: there is no picture to learn from")
    if not known.seen and len(names) < 2:
        raise UserError("images: a first update needs at least two classes, to tell them apart")
    return known.extend(names)


def _relabelled(classifier: Classifier, arrived: Labelled) -> Classifier:
    """Without kept pictures that now arrive as another class: the newest word on a picture counts."""
    said = {picture.known_as: name for picture, name in arrived}

    def still(groups: Groups) -> Groups:
        named = zip(classifier.classes.names, groups, strict=True)
        return tuple(tuple(one for one in group if said.get(one.known_as, name) == name) for name, group in named)

    return replace(classifier, exemplars=still(classifier.exemplars), quiz=still(classifier.quiz))


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


def _marks(classifier: Classifier, quiz: Groups) -> Marks | None:
    """How it does in the quiz of the classes that it knows; None if that is empty."""
    if not any(known := quiz[: classifier.classes.seen]):
        return None
    inner, context = _examined(classifier, known)
    found = predict(inner, torch.arange(len(context.samples)), context.samples, context)[MAIN]
    return marks(found, classifier.classes.names, classifier.classes.old)


@torch.inference_mode()
def _fitted(classifier: Classifier) -> float:
    """The temperature that fits its quiz."""
    if not any(classifier.quiz):
        return 1.0
    inner, context = _examined(classifier, classifier.quiz)
    looks = context.looks(inner.network, torch.arange(len(context.samples)))
    scores = torch.cat([inner.scores(output) for _, output in looks])
    return temperature(classifier.snapshot.scorers[MAIN], scores, context.samples.labels)


def _examined(classifier: Classifier, quiz: Groups) -> tuple[Snapshot, ExecutionContext]:
    """What looks at a quiz that is not empty, and where."""
    sight = sight_of(classifier.settings, classifier.snapshot)
    labels = [label for label, group in enumerate(quiz) for _ in group]
    samples = sight.samples([picture for group in quiz for picture in group], labels)
    return sight.inner(classifier.answering), sight.context(samples)


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
    snapshot, context = classifier.answering, bench_for(classifier.settings)
    scorer, names = snapshot.scorers[MAIN], classifier.classes.names
    for part, output in context.looks(snapshot.network, torch.arange(len(pictures)), samples):
        scores = snapshot.scores(output)
        order = scores.topk(min(top, len(names))).indices
        chances = scorer.probabilities(scores).gather(1, order)
        for index, row, ranks in zip(part.tolist(), chances.tolist(), order.tolist(), strict=True):
            yield Guess(pictures[index].name, tuple((names[c], p) for c, p in zip(ranks, row, strict=True)))


def changed(settings: ModelSettings, given: Mapping[str, Any]) -> ModelSettings:
    """The settings with what an update was told anew."""
    for name in FIXED:
        if given.get(name, own := getattr(settings, name)) != own:
            raise UserError(f"{name}: the model was made with {own!r}, which can't be changed; make another model")
    before = settings.model_dump()
    if "memory" in given:
        before["memory_mb"] = None
    return make_settings({**before, **given, "options": {**settings.options, **given.get("options", {})}})
