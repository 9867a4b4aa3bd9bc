"""One update of a classifier: it learns new classes, or more images of known ones, and keeps the old."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from statistics import fmean
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ssil.classifier.classifier_settings import FIXED, ClassifierSettings, ExemplarRule, make_settings
from ssil.classifier.epochs_in_time import time_limit, with_fitting_epochs
from ssil.classifier.feature_extraction import WholeNetwork, trained_network
from ssil.classifier.final_fit import with_holdout
from ssil.classifier.holdout import HoldoutResult
from ssil.classifier.holdout_split import BUDGET_SHARE, hold_out
from ssil.classifier.image_file import ImageFile, ImagesByClass, LabelledImages, labelled
from ssil.classifier.prediction import Classifier
from ssil.classifier.stored_values import exemplar_images, with_stored_rows
from ssil.classifier.tuning import tuned_method
from ssil.classifier.update_accuracy import LearntFeatures, measure_update
from ssil.core.classes import ClassTable
from ssil.core.errors import UserError
from ssil.core.randomness import Randomness
from ssil.core.samples import Samples
from ssil.learning import memory as memories
from ssil.learning.engine import learn, start
from ssil.learning.exemplar_values import with_values
from ssil.learning.memory import FixedBudget, Memory
from ssil.learning.method import Method
from ssil.learning.snapshot import Snapshot
from ssil.learning.task import Observer, Task, ignore_progress
from ssil.nn.pretrained import Pretrained

SIZE_SAMPLE = 200
"""About how many images are read to estimate the size of all of them."""


class NothingNewError(UserError):
    """All images of an update are kept already."""


class Update(NamedTuple):
    """The result of an update; both results are on the same images, which the model has not learnt."""

    classifier: Classifier
    before: HoldoutResult | None
    """The result of the classifier before the update, on the classes that it knew."""
    after: HoldoutResult | None
    trained_images: int
    """Images that were trained on, without exemplars."""
    known_classes: tuple[str, ...]
    """The classes that were known before."""
    epochs: int
    after_unscaled: HoldoutResult | None
    """The result after the update at a temperature of 1."""
    arrived: LabelledImages = ()
    """All images that arrived."""
    new_images: int = 0
    """Images that the update has brought: those that were trained on, and those by which the hold-out set has grown."""
    examined: LabelledImages = ()
    """The images at hand, with features where a frozen backbone has computed them: arrived, kept, and held out."""


def update(
    classifier: Classifier | None,
    settings: ClassifierSettings,
    images: LabelledImages,
    observer: Observer = ignore_progress,
    init: Pretrained | None = None,
    minutes: float | None = None,
) -> Update:
    """Train on images of new classes, more images of known ones, or both.

    Args:
        classifier: The classifier to update, which stays as it is; None for a first update.
        settings: The settings of the new classifier.
        images: The images that arrive.
        observer: Called after every training step.
        init: The first weights of the backbone, for a first update.
        minutes: Train for as many epochs as fit into this time with all else that an update does, instead of the
            settings' number.

    Raises:
        UserError: There is nothing to learn from these images.
    """
    due = time_limit(minutes)
    known, previous = (classifier.classes, classifier.snapshot) if classifier else (ClassTable(), None)
    classes = _extended(known, images)
    exemplars, held = _kept_images(classifier, images)
    network, random = trained_network(settings, previous, init, observer), Randomness(settings.seed)
    budget = _memory_budget(settings, [*(image for image, _ in images), *chain.from_iterable(exemplars)])
    method = settings.configured().method
    needed = method.requirements()
    counted = _counted(classifier, closed := not needed.training)
    arrived = _without_known(images, exemplars, counted) if closed else _without_kept(images, exemplars)
    largest = budget if needed.memory == "none" else int(BUDGET_SHARE * budget)
    ready, held = _with_features(network, _without_kept(arrived, held)), network.with_features(held)
    learnt = [*map(len, counted or exemplars)]
    drawn = random.within(classes.task)
    training, holdout = hold_out(ready, held, classes.names, largest, drawn, network.vectors, learnt)
    if not training:
        raise NothingNewError("images: the model keeps all of these images already; bring others")
    data = _TrainingData.of(network, classes, training, exemplars, method, previous)
    train = partial(_train, previous, data, network)
    evaluated = len(data.images) + 3 * sum(
        map(len, holdout)
    )  # after training: by advice, and three times the hold-out set
    timed = with_fitting_epochs(settings, due, train, first=not classifier, evaluated=evaluated)
    snapshot = train(timed, observer)
    left = 0 if needed.memory == "none" else budget - sum(map(len, holdout))
    memory = data.choose_exemplars(FixedBudget(left), settings.exemplars, random)
    trained, context = network.trained_part(snapshot), network.context(data.samples)
    chosen = exemplar_images(with_values(method, trained, memory, context), data.images)
    kept = _shrunk(chosen, settings), _shrunk(holdout, settings)
    unscaled = Classifier(settings, snapshot, *kept, _with_counted(counted, classes, training) if closed else ())
    epochs = timed.later_epochs if classifier else timed.epochs
    examined = [*data.labelled(), *labelled(classes.names, holdout)]
    brought = [*data.labelled()[: data.arrived], *_newly_held(holdout, held, classes)]
    learnt_now = _learnt_features(classes, brought)
    measured = measure_update(classifier, unscaled, learnt_now if closed else None, budget)
    final, rest = with_holdout(measured.classifier), (measured.after_unscaled, images, len(brought), examined)
    return Update(final, measured.before, measured.after, len(training), known.names, epochs, *rest)


def changed_settings(settings: ClassifierSettings, given: Mapping[str, Any]) -> ClassifierSettings:
    """Return a model's settings with those that an update was given; raise UserError if one of them can't change."""
    for name in FIXED:
        if given.get(name, own := getattr(settings, name)) != own:
            raise UserError(f"{name}: the model was made with {own!r}, which can't be changed; make another model")
    before = settings.model_dump()
    if "memory" in given:
        before["memory_mb"] = None
    return make_settings({**before, **given, "options": {**settings.options, **given.get("options", {})}})


def _extended(known: ClassTable, images: LabelledImages) -> ClassTable:
    """Return the class table with the classes that arrive for the first time, in alphabetical order."""
    names = sorted({name for _, name in images} - set(known.names))
    if not images:
        raise UserError("images: there is no image to learn from")
    if not known.seen and len(names) < 2:
        raise UserError("images: only one class; a first update needs at least two classes, to tell them apart")
    return known.extend(names)


def _kept_images(classifier: Classifier | None, images: LabelledImages) -> tuple[ImagesByClass, ImagesByClass]:
    """Return exemplars and hold-out set without images that now arrive under another class: the newest label counts."""
    labels = {image.original_digest: name for image, name in images}

    def unchanged(name: str, group: Sequence[ImageFile]) -> tuple[ImageFile, ...]:
        return tuple(image for image in group if labels.get(image.original_digest, name) == name)

    names, exemplars, holdout = (
        (classifier.classes.names, classifier.exemplars, classifier.holdout) if classifier else ((), (), ())
    )
    return tuple(map(unchanged, names, exemplars)), tuple(map(unchanged, names, holdout))


def _with_features(network: WholeNetwork, images: LabelledImages) -> LabelledImages:
    (found,) = network.with_features([[image for image, _ in images]])
    return [(image, name) for image, (_, name) in zip(found, images, strict=True)]


def _newly_held(
    holdout: Sequence[Sequence[ImageFile]], held: Sequence[Sequence[ImageFile]], classes: ClassTable
) -> LabelledImages:
    """Return the images by which the hold-out set has grown."""
    return _without_kept(labelled(classes.names, holdout), tuple(map(tuple, held)))


def _learnt_features(classes: ClassTable, images: LabelledImages) -> LearntFeatures | None:
    """Return the features of images and their classes; None if the backbone is not frozen."""
    found = [image.features() for image, _ in images if image.features]
    labels = {name: label for label, name in enumerate(classes.names)}
    return LearntFeatures(torch.stack(found), torch.tensor([labels[name] for _, name in images])) if found else None


def _without_kept(images: LabelledImages, groups: ImagesByClass) -> LabelledImages:
    """Leave out images that are kept: exemplars are trained on anyway, images of the hold-out set never."""
    kept = {image.original_digest for group in groups for image in group}
    return [(image, name) for image, name in images if image.original_digest not in kept]


def _counted(classifier: Classifier | None, closed: bool) -> tuple[tuple[str, ...], ...]:
    """Return for each known class the checksums of the images in its statistics.

    Those of a model that was made before they were kept are its exemplars'.
    """
    if not classifier or not closed:
        return ()
    exemplars = tuple(tuple(image.original_digest for image in group) for group in classifier.exemplars)
    return classifier.counted or exemplars


def _without_known(
    images: LabelledImages, exemplars: ImagesByClass, counted: Sequence[Sequence[str]]
) -> LabelledImages:
    """Leave out images that are in the statistics already, and all but one of equal images of a class."""
    known = {digest for group in counted for digest in group}
    once = {(image.original_digest, name): image for image, name in _without_kept(images, exemplars)}
    return [(image, name) for (digest, name), image in once.items() if digest not in known]


def _with_counted(
    counted: Sequence[Sequence[str]], classes: ClassTable, training: LabelledImages
) -> tuple[tuple[str, ...], ...]:
    """Return the checksums of each class's counted images after an update."""
    groups = {name: list[str]() for name in classes.names}
    for name, digests in zip(classes.names, counted, strict=False):
        groups[name] += digests
    for image, name in training:
        groups[name].append(image.original_digest)
    return tuple(map(tuple, groups.values()))


def _memory_budget(settings: ClassifierSettings, images: Sequence[ImageFile]) -> int:
    """Return how many images are kept in all; a limit in megabytes is converted by the mean size of some `images`."""
    if settings.memory_mb is None:
        return settings.memory
    (some,) = _shrunk([images[:: max(1, len(images) // SIZE_SAMPLE)]], settings)
    return max(1, int(settings.memory_mb * 1e6 / fmean(len(image.read()) for image in some)))


def _shrunk(groups: Iterable[Sequence[ImageFile]], settings: ClassifierSettings) -> ImagesByClass:
    """Return copies to keep, of twice the side that the network sees: large enough for crops and a larger network."""
    side, channels = 2 * settings.image_size, settings.preprocessing().channels
    return tuple(tuple(image.shrunk(side, channels) for image in group) for group in groups)


@dataclass(frozen=True)
class _TrainingData:
    """What an update is trained on: the arrived images, then the exemplars, as one set of samples."""

    classes: ClassTable
    images: tuple[ImageFile, ...]
    samples: Samples
    memory: Memory
    arrived: int

    @classmethod
    def of(
        cls,
        network: WholeNetwork,
        classes: ClassTable,
        arrived: LabelledImages,
        exemplars: ImagesByClass,
        method: Method,
        previous: Snapshot | None,
    ) -> "_TrainingData":
        label_of = {name: label for label, name in enumerate(classes.names)}
        labels = [label_of[name] for _, name in arrived]
        labels += [label for label, group in enumerate(exemplars) for _ in group]
        new, *old = network.with_features([[image for image, _ in arrived], *exemplars])
        images = (*new, *(image for group in old for image in group))
        kept = torch.arange(len(new), len(images)).split([len(group) for group in old]) if old else ()
        samples, known = network.samples(images, labels), with_stored_rows(Memory(tuple(kept)), images, method)
        before = network.trained_part(previous) if previous else None
        memory = with_values(method, before, known, network.context(samples))
        return cls(classes, images, samples, memory, len(new))

    def labelled(self) -> LabelledImages:
        """Return the images with the names of their classes."""
        return [*zip(self.images, map(self.classes.names.__getitem__, self.samples.labels.tolist()), strict=True)]

    def choose_exemplars(self, budget: FixedBudget, rule: ExemplarRule, random: Randomness) -> Memory:
        """Return the exemplars after the update."""
        arrived = memories.by_class(torch.arange(self.arrived), self.samples.labels)
        renewal, select = self._renewal(rule, random), memories.random_selection(random)
        return memories.update(self.memory, arrived, self.classes, budget, select, renewal)

    def _renewal(self, rule: ExemplarRule, random: Randomness) -> Callable[[memories.Select], memories.Renew]:
        """Return the rule by which a class's exemplars follow its new images."""
        by_priority = memories.reservoir(partial(self._priorities, random))
        rules = {"keep": memories.keeping, "recent": memories.most_recent, "reservoir": lambda _: by_priority}
        return rules[rule]

    def _priorities(self, random: Randomness, indices: Tensor) -> Tensor:
        """Return a random number for each image, which depends on the seed and the image alone."""
        keys = [self.images[index].original_digest for index in indices.tolist()]
        drawn = [torch.rand((), generator=random.at("reservoir", key), dtype=torch.float64) for key in keys]
        return torch.stack([torch.zeros((), dtype=torch.float64), *drawn])[1:]


def _train(
    previous: Snapshot | None,
    data: _TrainingData,
    network: WholeNetwork,
    settings: ClassifierSettings,
    observer: Observer,
) -> Snapshot:
    """Train with the settings' method, from the previous model or from first weights."""
    context, task = network.context(data.samples), Task(data.classes, torch.arange(data.arrived))
    trained = network.trained_part(previous) if previous else None
    progress = start(settings.configured().method, trained, task, context)
    method = tuned_method(settings, progress.network)
    return network.whole(learn(method, trained, data.memory, task, context, progress, observer))
