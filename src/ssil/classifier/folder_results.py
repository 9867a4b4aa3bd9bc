"""Test a version by a test folder: accuracies with intervals, each class, confusions, unknown images.

Nothing here imports torch, unless the version has no `model.onnx`.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from ssil.classifier.accuracy import ClassResult, added
from ssil.classifier.exported_model import Prediction, Predictor, load_predictor
from ssil.classifier.labelled_folder import LabelledPath, find_test_images
from ssil.classifier.prediction_inputs import read_inputs
from ssil.classifier.versions import COUNTED, EXEMPLARS, VersionedDirectory
from ssil.core.errors import UserError, did_you_mean
from ssil.data.image_index import Remark, as_utf8

OnImages = Callable[[int, int], None]
"""Called with the number of images that are tested, and the number of all."""


class ImageResult(NamedTuple):
    """What a model takes an image for."""

    name: str
    label: str
    predicted: str
    probability: float
    unknown: bool
    """Whether the model calls the image unknown; `predicted` is its best class all the same."""

    @property
    def correct(self) -> bool:
        """Whether the best class is the right one."""
        return self.predicted == self.label


class Confusion(NamedTuple):
    """Images of one class that are taken for another one."""

    label: str
    predicted: str
    images: tuple[str, ...]
    total: int
    """The class's images."""


@dataclass(frozen=True)
class FolderResult:
    """A version's predictions for a test folder. Accuracies count the best class, also of images called unknown."""

    version: int
    names: tuple[str, ...]
    """The model's classes in order of arrival."""
    old: int
    """The number of those that were known before the last update."""
    images: tuple[ImageResult, ...]
    """Of classes that the model knows."""
    others: tuple[ImageResult, ...]
    """Of classes that it does not know."""
    learnt: int = 0
    """Images that were left out since the model has learnt them."""
    remarks: tuple[Remark, ...] = ()
    """On images that can't be read."""

    @cached_property
    def classes(self) -> Mapping[str, ClassResult]:
        """The result on each of the model's classes that has an image, in order of arrival."""
        totals = Counter(image.label for image in self.images)
        correct = Counter(image.label for image in self.images if image.correct)
        return {name: ClassResult(correct[name], totals[name]) for name in self.names if totals[name]}

    def result(self, names: Iterable[str] | None = None) -> ClassResult:
        """Return the result on the images of these classes together, by default of all."""
        wanted = self.names if names is None else names
        return added(self.classes[name] for name in wanted if name in self.classes)

    @property
    def missing(self) -> list[str]:
        """The model's classes without an image."""
        return [name for name in self.names if name not in self.classes]

    def confusions(self) -> list[Confusion]:
        """Return the pairs of classes that are confused, the most frequent first."""
        pairs = defaultdict[tuple[str, str], list[str]](list)
        for image in self.images:
            if not image.correct:
                pairs[image.label, image.predicted].append(image.name)
        found = [Confusion(*pair, tuple(images), self.classes[pair[0]].total) for pair, images in pairs.items()]
        return sorted(found, key=lambda one: (-len(one.images), -len(one.images) / one.total))


def run_folder_test(
    model: Path,
    folder: Path,
    number: int | None = None,
    trusted: Collection[str] = (),
    threads: int | None = None,
    on_images: OnImages = lambda *_: None,
) -> FolderResult:
    """Test a version of a model, by default the current one.

    Images that the model is known to have learnt are left out: those that its statistics count, and its exemplars.

    Args:
        model: The model directory.
        folder: The test folder.
        number: The version.
        trusted: Methods and backbones from files that may be loaded, for a version without `model.onnx`.
        threads: The number of threads that compute.
        on_images: Called after every batch of images.

    Raises:
        UserError: There is no model, no image, or no image that the model has not learnt.
    """
    directory = VersionedDirectory(model)
    number = directory.current() if number is None else number
    predictor, description = load_predictor(model, number, trusted, threads), directory.description(number)
    names, old = tuple(description["classes"]["names"]), _old_classes(description)
    images, remarks = find_test_images(folder)
    learnt = learnt_digests(description)
    unseen = [image for image in images if image.digest not in learnt]
    if not unseen:
        raise UserError(f"test: the model has learnt all images in {folder}; give images that it has not seen")
    unreadable = list[Remark]()
    tested = [*_predictions(predictor, unseen, on_images, unreadable)]
    known = {*names}
    return FolderResult(
        number,
        names,
        old,
        tuple(image for image in tested if image.label in known),
        tuple(image for image in tested if image.label not in known),
        len(images) - len(unseen),
        (*remarks, *unreadable),
    )


def _old_classes(description: Mapping[str, Any]) -> int:
    """Return the number of classes that were known before the last update; raise UserError if it is not stated."""
    bounds = description["classes"].get("bounds")
    if not isinstance(bounds, list) or len(bounds) < 2 or not all(type(bound) is int for bound in bounds):
        raise UserError("model: its model.json is not what it should be (bounds); restore it, or roll back")
    return int(bounds[-2])


def _predictions(
    predictor: Predictor, images: Sequence[LabelledPath], on_images: OnImages, remarks: list[Remark]
) -> Iterator[ImageResult]:
    labels, done = {as_utf8(str(image.path)): image.label for image in images}, 0
    for paths, views, unreadable in read_inputs([str(one.path) for one in images], BytesIO(), predictor.preprocessing):
        for prediction in predictor.predict(paths, views, 1):
            yield image_result(prediction, labels[prediction.name])
        remarks += unreadable
        done += len(paths) + len(unreadable)
        on_images(done, len(images))


def image_result(prediction: Prediction, label: str) -> ImageResult:
    """Return a prediction beside the class that is right."""
    predicted, probability = prediction.ranking[0]
    return ImageResult(prediction.name, label, predicted, probability, prediction.unknown)


def learnt_digests(description: Mapping[str, Any]) -> set[str]:
    """Return the checksums of the images that a version is known to have learnt, by its model.json."""
    exemplars = {image["origin"] or image["sha256"] for group in description[EXEMPLARS] for image in group}
    return exemplars | {digest for group in description.get(COUNTED, ()) for digest in group}


def unknown_classes(result: FolderResult) -> Iterator[str]:
    """Yield a line about each class of the test folder that the model does not know, with a similar name if any is."""
    for name, total in Counter(image.label for image in result.others).items():
        called = sum(image.unknown for image in result.others if image.label == name)
        hint = did_you_mean(name, result.names, "")
        yield f"{name!r}: {called} of {total} called unknown{'; ' * bool(hint)}{hint}"
