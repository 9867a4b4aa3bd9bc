"""Advice on an update: suspicious images, confused classes, classes that look like one, classes that need images."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from ssil.classifier.advice.confusions import ConfusedPair, ImagesAtHand, confused_pairs
from ssil.classifier.advice.doubtful_classes import alike_classes, spelt_alike
from ssil.classifier.advice.doubtful_images import (
    Flags,
    Judgement,
    blurred_images,
    dark_images,
    doubtful_labels,
    far_images,
    judge,
    nearly_same,
)
from ssil.classifier.advice.hard_images import HardImage, hard_images
from ssil.classifier.advice.image_measures import ImageMeasures, Values, measure_images
from ssil.classifier.advice.learnt_before import LearntBefore, learnt_classes
from ssil.classifier.advice.leave_one_out import LeftOut
from ssil.classifier.feature_extraction import trained_network
from ssil.classifier.image_file import ImageFile, LabelledImages
from ssil.classifier.prediction import Classifier
from ssil.classifier.update import Update
from ssil.learning.task import Observer, ignore_progress

MAX_EXAMINED = 20_000
"""Of more images, as many are examined, evenly spread over them."""
FEW, WEAK = 10, 0.6
"""A class needs more images if it has fewer than these, or if a smaller part of its images is recognised."""

RELIABLE = 0.5
"""If a smaller part of the images is nearest to its own class, nothing is said of classes that look like one."""

Kind = Literal["same", "nearly same", "wrong class", "blurred", "dark", "far"]
KINDS: tuple[Kind, ...] = ("same", "nearly same", "wrong class", "blurred", "dark", "far")
"""Why an image is suspicious; of several reasons the first one counts."""


class Suspect(NamedTuple):
    """An image that somebody should look at."""

    kind: Kind
    image: ImageFile
    label: str
    other: str = ""
    """The class that it looks like, or in which the same image is too."""
    twin: ImageFile | None = None
    """The same image in the other class; None where only its class is known."""


class AlikePair(NamedTuple):
    """Two classes that look like one under two names."""

    first: str
    """The one that was known first."""
    second: str
    nearer: int
    """Images of both that look more like the other class."""
    images: int
    """All images of both that were examined."""
    spelling: bool = False
    """Whether the names differ by case, spaces or hyphens only."""


class NeededImages(NamedTuple):
    """A class of which there should be more images."""

    label: str
    images: int
    """Images that the model has learnt or holds out."""
    correct: int
    total: int
    """Of so many images that were tried so many are recognised."""


@dataclass(frozen=True)
class Advice:
    """What would help a classifier; the most important of each kind first."""

    examined: int
    """Images of the update that were examined."""
    suspects: tuple[Suspect, ...]
    confused: tuple[ConfusedPair, ...]
    alike: tuple[AlikePair, ...]
    needed: tuple[NeededImages, ...]
    typical: Mapping[str, ImageFile]
    """An image of each examined class that is near its mean."""
    hard: tuple[HardImage, ...] = ()
    """Images of the update that are taken for another class or recognised only just; no suspect is among them."""
    taken: tuple[ConfusedPair, ...] = ()
    """Confused pairs that are not in `confused`, since their classes look like one."""

    def of_kind(self, kind: Kind) -> list[Suspect]:
        """Return the suspects of a kind."""
        return [suspect for suspect in self.suspects if suspect.kind == kind]


def advise(known: Classifier | None, result: Update) -> Advice:
    """Return advice on the images that an update has brought.

    The arrived images are examined together with the images that the model keeps, and with the features that it keeps
    of images without keeping these. Where a frozen backbone has computed features they are used, else those of the
    network after the update, which has learnt the images: then fewer wrong labels stand out.

    Args:
        known: The classifier before the update; None for a first one.
        result: The update.
    """
    sizes = _class_sizes(result)
    examined = result.examined[:: -(-len(result.examined) // MAX_EXAMINED) or 1]
    twins = {(one.image.original_digest, one.label): one for one in same_images(known, result.arrived)}
    needed = tuple(_needed(result, sizes))
    if not examined:
        confused = tuple(confused_pairs(result.classifier, None))
        return Advice(0, tuple(twins.values()), confused, (), needed, {})
    found = _examined_images(result.classifier, examined, LearntBefore.of(known))
    alike = tuple(_alike_pairs(found, result, sizes))
    arrived = {(image.original_digest, name) for image, name in result.arrived}
    suspects = first_reasons([*twins.values(), *found.suspects()])
    brought = [one for one in suspects if (one.image.original_digest, one.label) in arrived]
    at_hand, told = found.at_hand(), {(one.image.original_digest, one.label) for one in suspects}
    hard = [one for one in hard_images(result.classifier, at_hand) if one.key in arrived - told]
    count = sum((image.original_digest, name) in arrived for image, name in examined)
    confused = tuple(confused_pairs(result.classifier, at_hand))
    every = Advice(count, tuple(brought), confused, alike, needed, found.typical(), tuple(hard))
    return _without_pairs(every)


def _alike_pairs(found: "ExaminedImages", result: Update, sizes: Mapping[str, int]) -> Iterator[AlikePair]:
    """Yield the pairs that look like one class and those spelt alike, if an image of either has arrived."""
    brought = {name for _, name in result.arrived}
    looking = {frozenset((pair.first, pair.second)): pair for pair in found.alike()}
    for first, second in spelt_alike(result.classifier.classes.names):
        pair = looking.pop(frozenset((first, second)), None)
        both = pair or AlikePair(first, second, 0, sizes[first] + sizes[second])
        if {first, second} & brought:
            yield both._replace(spelling=True)
    yield from (pair for pair in looking.values() if {pair.first, pair.second} & brought)


def _without_pairs(advice: Advice) -> Advice:
    """Return advice in which what is said of two classes that look like one is not said again of their images."""
    pairs = [{pair.first, pair.second} for pair in advice.alike]
    paired = {name for pair in pairs for name in pair}
    return replace(
        advice,
        suspects=tuple(
            one for one in advice.suspects if one.kind != "wrong class" or {one.label, one.other} not in pairs
        ),
        confused=tuple(one for one in advice.confused if {one.label, one.other} not in pairs),
        taken=tuple(one for one in advice.confused if {one.label, one.other} in pairs),
        needed=tuple(one for one in advice.needed if one.label not in paired),
    )


def first_reasons(suspects: Sequence[Suspect]) -> list[Suspect]:
    """Return each suspect once, by kind; two that are the same, or nearly, are told together or not at all."""
    told, found = set[tuple[str, str]](), list[Suspect]()
    for suspect in sorted(suspects, key=lambda one: KINDS.index(one.kind)):
        both = {(suspect.image.original_digest, suspect.label)}
        if suspect.twin:
            both.add((suspect.twin.original_digest, suspect.other))
        if suspect.kind == "same" or not both & told:
            found.append(suspect)
            told |= both
    return found


def same_images(known: Classifier | None, arrived: LabelledImages) -> Iterator[Suspect]:
    """Yield the arrived images that are, byte by byte, in another class too: one that arrived, or a known one."""
    before = learnt_classes(known)
    first: dict[str, tuple[ImageFile, str]] = {}
    for image, name in arrived:
        digest = image.original_digest
        twin, other = first.setdefault(digest, (image, name))
        if other != name:
            yield Suspect("same", image, name, other, twin)
        elif before.get(digest, name) != name:
            yield Suspect("same", image, name, before[digest])


def _class_sizes(result: Update) -> Counter[str]:
    """Return how many images the model has learnt or holds out of each class."""
    return Counter(result.classifier.image_counts() or [name for _, name in result.examined])


def _needed(result: Update, sizes: Mapping[str, int]) -> Iterator[NeededImages]:
    """Yield the classes with few images, or of which few images are recognised, the weakest first."""
    results = result.after.classes if result.after else {}
    rows = []
    for name in result.classifier.classes.names:
        correct, total = results.get(name, (0, 0))
        weak = total > 1 and correct < WEAK * total
        if weak or sizes[name] < FEW:
            rows.append(NeededImages(name, sizes[name], correct, total))
    yield from sorted(rows, key=lambda row: (row.correct / row.total if row.total else 0.0, row.images))


@dataclass(frozen=True)
class ExaminedImages:
    """Images with what was found out about each."""

    images: tuple[ImageFile, ...]
    names: tuple[str, ...]
    """The classes that have an image, or features of one."""
    labels: Tensor
    features: Tensor
    measures: ImageMeasures
    judgement: Judgement
    counts: list[int]
    """Of each class the images, and the features without an image."""

    @classmethod
    def of(
        cls, known: Sequence[str], examined: LabelledImages, features: Tensor, before: LearntBefore
    ) -> "ExaminedImages":
        """Judge images by each other, and by features of images that are not at hand.

        Args:
            known: The names of all classes, in their order.
            examined: The images with their classes.
            features: Of the images, (N, width).
            before: What was learnt before.
        """
        images = tuple(image for image, _ in examined)
        before = before.without(features, [name for _, name in examined])
        every = [*(name for _, name in examined), *before.names]
        names = tuple(name for name in known if name in {*every})
        label_of = {name: label for label, name in enumerate(names)}
        labels = torch.tensor([label_of[name] for name in every])
        together = torch.cat([features, before.features]) if before.names else features
        judgement = judge(LeftOut.of(together, labels)).first(len(images))
        own, counts = labels[: len(images)], torch.bincount(labels).tolist()
        return cls(images, names, own, features, measure_images(images), judgement, counts)

    def suspects(self) -> Iterator[Suspect]:
        """Yield all suspects but those that are byte by byte the same, the most suspicious of a kind first."""
        for one, other in nearly_same(self.measures, self.features, self.labels):
            if self.images[one].original_digest != self.images[other].original_digest:
                yield Suspect("nearly same", self.images[one], self._name(one), self._name(other), self.images[other])
                yield Suspect("nearly same", self.images[other], self._name(other), self._name(one), self.images[one])
        for row in self._ordered(doubtful_labels(self.judgement, self.labels), -self.judgement.odds):
            other = self.names[self.judgement.likeliest[row]]
            yield Suspect("wrong class", self.images[row], self._name(row), other)
        flags: list[tuple[Kind, Flags, Values]] = [
            ("blurred", blurred_images(self.measures, self.labels), self.measures.sharpness),
            ("dark", dark_images(self.measures, self.labels), self.measures.brightness),
            ("far", far_images(self.judgement), -self.judgement.distance),
        ]
        for kind, flagged, order in flags:
            yield from (Suspect(kind, self.images[row], self._name(row)) for row in self._ordered(flagged, order))

    def alike(self) -> Iterator[AlikePair]:
        """Yield the pairs of classes that look like one; none if the features tell hardly any classes apart."""
        if self.judgement.accuracy < RELIABLE or not self.judgement.nearer.size:
            return
        for pair in alike_classes(self.judgement.nearer, self.counts):
            both = self.counts[pair.first] + self.counts[pair.second]
            yield AlikePair(self.names[pair.first], self.names[pair.second], pair.images, both)

    def at_hand(self) -> ImagesAtHand:
        """Return the images with their features and classes."""
        return ImagesAtHand(self.images, self.features, [*map(self._name, range(len(self.images)))])

    def typical(self) -> dict[str, ImageFile]:
        """Return an image of each class that is near its mean."""
        order = self.judgement.distance.argsort()[::-1].tolist()  # the nearest last: it is the one that stays
        return {self._name(row): self.images[row] for row in order}

    def _name(self, row: int) -> str:
        return self.names[int(self.labels[row])]

    @staticmethod
    def _ordered(flagged: Flags, values: Values) -> list[int]:
        rows: list[int] = flagged.nonzero()[0].tolist()
        return sorted(rows, key=lambda row: float(values[row]))


def _examined_images(classifier: Classifier, examined: LabelledImages, before: LearntBefore) -> ExaminedImages:
    features = images_features(classifier, [image for image, _ in examined])
    return ExaminedImages.of(classifier.classes.names, examined, features, before)


@torch.inference_mode()
def images_features(
    classifier: Classifier, images: Sequence[ImageFile], observer: Observer = ignore_progress
) -> Tensor:
    """Return the features of images: those that a frozen backbone has computed, or the network's own."""
    network = trained_network(classifier.settings, classifier.snapshot, observer=observer)
    samples = network.samples(images, [0] * len(images))
    snapshot, context = network.trained_part(classifier.snapshot), network.context(samples)
    outputs = context.batched_outputs(snapshot.network, torch.arange(len(samples)))
    return torch.cat([output.features.float().cpu() for _, output in outputs]).nan_to_num()
