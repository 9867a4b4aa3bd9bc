"""Methods that add up features learn their hold-out images in the end, and are judged by what they were before."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from frozen_classifiers import backbone, frozen
from ssil.classifier.edits import forget
from ssil.classifier.final_fit import with_holdout, without_holdout
from ssil.classifier.holdout import evaluate, image_scores
from ssil.classifier.image_file import LabelledImages
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.prediction import Classifier
from ssil.classifier.update import Update, update
from ssil.learning.snapshot import MAIN
from tiny_classifiers import labelled_images

NAMES = ["ant", "bee", "cat"]
METHODS = [("ncm", {}), ("slda", {}), ("fecam", {}), ("fecam", {"covariance": "full"}), ("ranpac", {"width": 40})]


def learnt(method: str, images: LabelledImages, before: Classifier | None = None, **given: Any) -> Update:
    own = frozen(method=method, **given)
    return update(before, own, images, init=None if before else backbone())


def scores(classifier: Classifier) -> Tensor:
    """Of images that no classifier here has seen."""
    images = tuple(
        tuple(image for image, _ in labelled_images([name], 6, first=50)) for name in classifier.classes.names
    )
    return image_scores(classifier, images)[0]


def two_updates(method: str, **given: Any) -> Update:
    first = learnt(method, labelled_images(NAMES), **given)
    return learnt(method, labelled_images(["dog", "eel"]), first.classifier, **given)


@pytest.mark.parametrize(("method", "options"), METHODS)
def test_scores_are_those_of_all_images_at_once(method: str, options: dict[str, object]) -> None:
    found = two_updates(method, options=options).classifier
    assert any(found.holdout)
    everything = [*labelled_images(NAMES), *labelled_images(["dog", "eel"])]
    at_once = learnt(method, everything, memory=0, options=options).classifier
    assert not any(at_once.holdout)
    assert torch.allclose(scores(found), scores(at_once), rtol=1e-4, atol=1e-4)
    assert not torch.allclose(scores(found), scores(without_holdout(found)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("method", "options"), METHODS)
def test_the_statistics_stay_without_hold_out_images(method: str, options: dict[str, object]) -> None:
    found = two_updates(method, options=options).classifier
    assert found.snapshot.scorers[MAIN].get_buffer("counts").sum(0).tolist() == [8] * 5
    held = {image.digest for group in found.holdout for image in group}
    training = [pair for pair in labelled_images([*NAMES, "dog", "eel"]) if pair[0].digest not in held]
    unseen = learnt(method, training, memory=0, options=options).classifier
    assert torch.allclose(scores(without_holdout(found)), scores(unseen), rtol=1e-4, atol=1e-4)


def test_the_reported_accuracy_is_that_of_a_classifier_that_has_not_seen_the_images() -> None:
    first = learnt("slda", labelled_images(NAMES))
    second = learnt("slda", labelled_images(["dog"]), first.classifier)
    judged = without_holdout(second.classifier)
    images, labels = image_scores(judged, second.classifier.holdout)
    found = evaluate(second.classifier, second.classifier.holdout)
    assert found
    assert sum(one.correct for one in found.classes.values()) == int((images.argmax(1) == labels).sum())
    assert second.after
    assert second.after.cross_validated
    assert {name: one.total for name, one in second.after.classes.items()} == dict.fromkeys([*NAMES, "dog"], 10)
    assert second.before
    assert first.after
    assert second.before.classes == first.after.classes
    for classifier in (second.classifier, with_holdout(judged)):
        again = evaluate(classifier)
        assert again
        assert (again.classes, again.groups) == (second.after.classes, second.after.groups)


def test_a_method_that_trains_is_left_alone() -> None:
    found = learnt("eeil", labelled_images(NAMES)).classifier
    assert with_holdout(found) is without_holdout(found) is found


def test_a_forgotten_class_leaves_the_hold_out_images_of_the_others(tmp_path: Path) -> None:
    directory = ModelDirectory(tmp_path / "model", (frozen().backbone,))
    with directory.locked():
        directory.publish_change(None, learnt("ncm", labelled_images(NAMES)).classifier)
    forget(directory, "bee")
    without_bee = learnt("ncm", labelled_images(["ant", "cat"]), memory=0).classifier
    assert torch.allclose(scores(directory.load().classifier), scores(without_bee), rtol=1e-4, atol=1e-4)
