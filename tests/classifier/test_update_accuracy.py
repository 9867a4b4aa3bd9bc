"""By what an update is measured: cross-validation of closed forms, hold-out sets of others and of older models."""

from dataclasses import replace
from pathlib import Path

import torch

from frozen_classifiers import backbone, frozen
from ssil.classifier import edits
from ssil.classifier.holdout import evaluate
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.update import update
from tiny_classifiers import labelled_images

NAMES = ["ant", "bee", "cat"]


def test_a_closed_form_is_cross_validated_on_all_images() -> None:
    first = update(None, frozen(method="slda"), labelled_images(NAMES), init=backbone())
    second = update(first.classifier, frozen(method="slda"), labelled_images(["dog", "ant"], 4, first=10))
    assert first.after
    assert second.before
    assert second.after
    assert second.after.cross_validated
    assert {name: one.total for name, one in first.after.classes.items()} == dict.fromkeys(NAMES, 10)
    counts = {"ant": 14, "bee": 10, "cat": 10}
    assert {name: one.total for name, one in second.before.classes.items()} == counts
    assert {name: one.total for name, one in second.after.classes.items()} == counts | {"dog": 4}


def test_the_memory_limits_the_images_that_are_kept() -> None:
    none = update(None, frozen(method="slda", memory=0), labelled_images(NAMES), init=backbone())
    assert none.after is None
    assert none.classifier.validated is not None
    assert len(none.classifier.validated) == 0
    few = update(None, frozen(method="slda", memory=12), labelled_images(NAMES), init=backbone())
    assert few.classifier.validated is not None
    assert torch.bincount(few.classifier.validated.labels).tolist() == [4, 4, 4]


def test_a_model_made_before_goes_on_with_its_hold_out_set() -> None:
    first = update(None, frozen(method="slda"), labelled_images(NAMES), init=backbone()).classifier
    second = update(replace(first, validated=None), frozen(method="slda"), labelled_images(["dog"]))
    assert second.after
    assert not second.after.cross_validated
    assert second.classifier.validated is None
    held = {
        name: len(group) for name, group in zip(second.classifier.classes.names, second.classifier.holdout, strict=True)
    }
    assert {name: one.total for name, one in second.after.classes.items()} == held


def test_methods_that_train_use_the_hold_out_set() -> None:
    found = update(None, frozen(method="eeil"), labelled_images(NAMES), init=backbone())
    assert found.classifier.validated is None
    assert found.after
    assert not found.after.cross_validated


def test_the_images_are_saved_and_forgetting_a_class_erases_them_from_all_versions(tmp_path: Path) -> None:
    first = update(None, frozen(method="slda"), labelled_images(NAMES), init=backbone())
    directory = ModelDirectory(tmp_path / "model", (first.classifier.settings.backbone,))
    with directory.locked():
        directory.publish_change(None, first.classifier, new=NAMES)
    loaded = directory.load()
    again = evaluate(loaded.classifier)
    assert again
    assert first.after
    assert again.classes == first.after.classes
    edits.forget(directory, "bee")
    assert directory.load(1).classifier.validated is None
    left = directory.load(2).classifier
    assert left.validated is not None
    assert torch.bincount(left.validated.labels).tolist() == [10, 10]
    assert update(left, frozen(method="slda"), labelled_images(["dog"])).after
