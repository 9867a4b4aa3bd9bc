"""Marks on images that wait to be learnt: the advice on an update, as far as it can be given before the update."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from torch import Tensor

from ssil.classifier.advice.advise import (
    MAX_EXAMINED,
    ExaminedImages,
    Kind,
    first_reasons,
    images_features,
    same_images,
)
from ssil.classifier.advice.doubtful_images import alike_pairs
from ssil.classifier.advice.learnt_before import LearntBefore, learnt_classes
from ssil.classifier.classifier_settings import make_settings
from ssil.classifier.feature_extraction import FrozenBackbone, trained_network
from ssil.classifier.image_file import ImageFile, LabelledImages, labelled
from ssil.classifier.prediction import Classifier
from ssil.classifier.publish_update import first_settings
from ssil.learning.task import Observer, ignore_progress

MarkKind = Kind | Literal["learnt", "double"]
"""As for advice; `learnt`: in this class already; `double`: nearly the same as another image of its class."""


class ImageMark(NamedTuple):
    """Why somebody should look at an image before it is learnt."""

    kind: MarkKind
    digest: str
    label: str
    other: str = ""
    """The class that it looks like, or in which the same image is too."""


def marks_before_learning(
    known: Classifier | None, waiting: LabelledImages, observer: Observer = ignore_progress
) -> list[ImageMark]:
    """Return the marks of images that wait, one per image at most.

    The images are examined together with those that the model keeps, by the features of its network; without a model,
    by those of the weights with which a new one starts.

    Args:
        known: The classifier that is to learn the images; None if there is none yet.
        waiting: The images; of more than `MAX_EXAMINED`, some are examined.
        observer: Called after every batch of images whose features are computed.
    """
    some = waiting[:: -(-len(waiting) // MAX_EXAMINED) or 1]
    found = [*_learnt_already(known, waiting), *(_other_marks(known, some, observer) if some else ())]
    digests = {image.original_digest for image, _ in waiting}
    marks = {one.digest: one for one in reversed(found) if one.digest in digests}  # of several the first one stays
    return [*marks.values()][::-1]


def _learnt_already(known: Classifier | None, waiting: LabelledImages) -> Iterator[ImageMark]:
    before = learnt_classes(known)
    for image, name in waiting:
        if before.get(image.original_digest) == name:
            yield ImageMark("learnt", image.original_digest, name)


def _other_marks(known: Classifier | None, waiting: LabelledImages, observer: Observer) -> Iterator[ImageMark]:
    """Yield the marks of suspicious images, kept ones included, and then those of doubles."""
    digests, names = {image.original_digest for image, _ in waiting}, known.classes.names if known else ()
    groups = (known.exemplars, known.holdout) if known else ()
    kept = [one for group in groups for one in labelled(names, group) if one[0].original_digest not in digests]
    every = [*waiting, *kept]
    features = _features(known, [image for image, _ in every], observer)
    all_names = [*names, *sorted({name for _, name in waiting} - {*names})]
    examined = ExaminedImages.of(all_names, every, features, LearntBefore.of(known))
    for one in first_reasons([*same_images(known, waiting), *examined.suspects()]):
        yield ImageMark(one.kind, one.image.original_digest, one.label, one.other)
    yield from _doubles(examined, every)


def _doubles(examined: ExaminedImages, images: LabelledImages) -> Iterator[ImageMark]:
    """Yield one of each two images of a class that are nearly the same; a kept image is none, it comes last."""
    for one, other in alike_pairs(examined.measures, examined.features):
        if images[one][1] == images[other][1]:
            yield ImageMark("double", images[one][0].original_digest, images[one][1])


def _features(known: Classifier | None, images: Sequence[ImageFile], observer: Observer) -> Tensor:
    if known:
        return images_features(known, images, observer)
    given, weights = first_settings({}, None)
    network = trained_network(make_settings(given), None, weights, observer)
    assert isinstance(network, FrozenBackbone)  # a model of default settings trains no backbone
    return network.features(images).float()
