"""Confused pairs: counted on the images that the accuracy is counted on, with examples where there are any."""

from dataclasses import replace

import torch

from frozen_classifiers import backbone, frozen
from ssil.classifier.advice.confusions import ImagesAtHand, confused_pairs
from ssil.classifier.cross_validation import ValidatedImages
from ssil.classifier.holdout import validated_result
from ssil.classifier.image_file import ImageFile
from ssil.classifier.update import update
from tiny_classifiers import labelled_images


def image(name: str) -> ImageFile:
    return ImageFile.from_bytes(name, name.encode())


def test_pairs_are_those_of_cross_validation() -> None:
    own = frozen(method="slda", memory=60, unknown_loss=0)
    made = update(None, own, labelled_images(["ant", "bee", "cat"], 4), init=backbone()).classifier
    features = torch.eye(7)
    labels, predicted = torch.tensor([0, 0, 0, 0, 1, 1, 2]), torch.tensor([1, 1, 2, 0, 1, 0, 0])
    validated = ValidatedImages.of(features, labels, predicted)
    at_hand = ImagesAtHand(
        [image("ant/0"), image("bee/like-ant-1"), image("ant/2")],
        torch.stack([features[0] + 0.01, features[1], features[2]]),
        ["ant", "bee", "ant"],
    )
    found = [*confused_pairs(replace(made, validated=validated), at_hand)]
    told = {(pair.label, pair.other): ([one.name for one in pair.images], pair.wrong, pair.total) for pair in found}
    assert told == {("ant", "bee"): (["ant/0"], 2, 4), ("ant", "cat"): (["ant/2"], 1, 4), ("bee", "ant"): ([], 1, 2)}
    assert found[0].wrong == 2
    result = validated_result(validated, made.classes.names)
    assert result
    for name, (correct, total) in result.classes.items():
        pairs = [pair for pair in found if pair.label == name]
        assert sum(pair.wrong for pair in pairs) == total - correct
        assert all(pair.total == total for pair in pairs)


def test_without_images_to_try_there_are_no_pairs() -> None:
    own = frozen(method="slda", memory=60, unknown_loss=0)
    made = update(None, own, labelled_images(["ant", "bee", "cat"], 4), init=backbone()).classifier
    assert [*confused_pairs(replace(made, validated=None, holdout=((), (), ())), None)] == []
