"""Hard images: found by a loop over all images that were tried, one by one."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from frozen_classifiers import backbone, frozen
from ssil.classifier.advice.advise import advise
from ssil.classifier.advice.confusions import ImagesAtHand
from ssil.classifier.advice.hard_images import hard_images
from ssil.classifier.cross_validation import ValidatedImages
from ssil.classifier.image_file import ImageFile, LabelledImages
from ssil.classifier.prediction import Classifier, predict
from ssil.classifier.update import update
from tiny_classifiers import labelled_images, settings

Found = tuple[str, str, str, float]


def told(classifier: Classifier, at_hand: ImagesAtHand) -> list[Found]:
    found = hard_images(classifier, at_hand)
    return [(one.image.name, one.label, one.taken_for, round(one.confidence, 3)) for one in found]


def expected(rows: Sequence[Found]) -> list[Found]:
    wrong = [row for row in rows if row[1] != row[2]]
    just = [row for row in rows if row[1] == row[2] and row[3] < 0.5]
    return sorted(wrong, key=lambda row: -row[3]) + sorted(just, key=lambda row: row[3])


def test_cross_validated_images() -> None:
    """One of another class's name, one that is not at hand, and the only one of its class are left out."""
    own = frozen(method="slda", memory=60, unknown_loss=0)
    made = update(None, own, labelled_images(["ant", "bee", "cat"], 4), init=backbone()).classifier
    names, features = ("ant", "bee", "cat"), torch.eye(8)
    labels, predicted = torch.tensor([0, 0, 0, 0, 1, 1, 1, 2]), torch.tensor([1, 0, 2, 0, 1, -1, 0, 0])
    confidence = torch.tensor([0.6, 0.4, 0.9, 0.8, 0.3, 0.9, 0.7, 0.9])
    validated = replace(ValidatedImages.of(features, labels, predicted), confidence=confidence)
    images = [ImageFile.from_bytes(f"{row}", f"{row}".encode()) for row in range(8)]
    at_hand = ImagesAtHand(images[:6], features[:6] + 0.01, [names[label] for label in labels[:6]])
    rows = [(f"{row}", names[labels[row]], names[predicted[row]], round(float(confidence[row]), 3)) for row in range(5)]
    assert told(replace(made, validated=validated), at_hand) == expected(rows)
    assert [name for name, *_ in expected(rows)] == ["2", "0", "4", "1"]


def test_held_out_images() -> None:
    """A network that was trained for one step knows little: its hold-out images are predicted one by one."""
    made = update(None, settings(epochs=1), labelled_images(["ant", "bee", "cat"], 12)).classifier
    images: LabelledImages = [
        (image, name) for name, group in zip(made.classes.names, made.holdout, strict=True) for image in group
    ]
    best = [next(predict(made, [image], 1)).ranking[0] for image, _ in images]
    rows = [(image.name, name, *one) for (image, name), one in zip(images, best, strict=True)]
    found = hard_images(made, ImagesAtHand([], torch.empty(0, 1), []))
    assert {(one.image.name, one.taken_for) for one in found} == {(row[0], row[2]) for row in expected(rows)}
    assert found


def test_a_suspect_is_not_told_twice() -> None:
    images = [*labelled_images(["ant", "bee"], 8), (labelled_images(["ant"], 1, 50)[0][0], "bee")]
    found = advise(None, update(None, frozen(method="slda", memory=60), images, init=backbone()))
    suspects = {(one.image.original_digest, one.label) for one in found.suspects}
    assert suspects
    assert not suspects & {one.key for one in found.hard}
