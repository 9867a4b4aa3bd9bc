"""Tests by a test folder: which images count, and which predictions are right."""

from pathlib import Path

import pytest

import tiny_classifiers
from ssil.classifier.accuracy import ClassResult
from ssil.classifier.folder_results import FolderResult, ImageResult, run_folder_test, unknown_classes
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.prediction import predict
from ssil.classifier.publish_update import publish_update
from ssil.core.errors import UserError

SETTINGS = tiny_classifiers.settings(epochs=4, later_epochs=4).model_dump()


def result(*found: tuple[str, str]) -> FolderResult:
    images = [ImageResult(f"{at}.png", label, predicted, 0.5, False) for at, (label, predicted) in enumerate(found)]
    return FolderResult(2, ("ant", "bee", "cat"), 2, tuple(images), ())


def test_results_are_counted_by_class_and_group() -> None:
    found = result(("ant", "ant"), ("ant", "bee"), ("ant", "bee"), ("cat", "cat"), ("cat", "ant"))
    assert found.classes == {"ant": ClassResult(1, 3), "cat": ClassResult(1, 2)}
    assert found.result() == ClassResult(2, 5)
    assert found.result(["ant", "bee"]) == ClassResult(1, 3)
    assert found.missing == ["bee"]
    assert [(one.label, one.predicted, one.images, one.total) for one in found.confusions()] == [
        ("ant", "bee", ("1.png", "2.png"), 3),
        ("cat", "ant", ("4.png",), 2),
    ]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows ant and bee, then cat."""
    root = tmp_path_factory.mktemp("tested")
    for names in (["ant", "bee"], ["cat"]):
        publish_update(root / "model", str(tiny_classifiers.folder(root / names[0], names, 8)), SETTINGS)
    return root / "model"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four images of each of three classes, of which the model has not learnt the last two; and of an unknown class."""
    for image, name in tiny_classifiers.labelled_images(["ant", "cat", "Bee"], 4, first=6):
        path = tmp_path / name / Path(image.name).name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(image.read())
    return tmp_path


def test_predictions_are_those_of_the_model_and_learnt_images_are_left_out(model: Path, folder: Path) -> None:
    found = run_folder_test(model, folder, trusted=[SETTINGS["backbone"]])
    classifier = ModelDirectory(model, [SETTINGS["backbone"]]).load().classifier
    learnt = {image.original_digest for group in classifier.exemplars for image in group}
    images = [
        (image, name)
        for image, name in tiny_classifiers.labelled_images(["ant", "cat"], 4, first=6)
        if image.digest not in learnt
    ]
    expected = [one.ranking[0][0] for one in predict(classifier, [image for image, _ in images])]
    assert [(one.label, one.predicted) for one in found.images] == [
        (name, predicted) for (_, name), predicted in zip(images, expected, strict=True)
    ]
    assert found.learnt == 8 - len(images) > 0
    assert (found.names, found.old, found.version) == (("ant", "bee", "cat"), 2, 2)
    assert {image.label for image in found.others} == {"Bee"}
    assert [*unknown_classes(found)] == ["'Bee': 0 of 4 called unknown; did you mean 'bee'?"]


def test_a_folder_of_learnt_images_is_refused(model: Path, tmp_path: Path) -> None:
    kept = ModelDirectory(model, [SETTINGS["backbone"]]).load().classifier.exemplars[0][0]
    (tmp_path / "ant").mkdir()
    (tmp_path / "ant/0.png").write_bytes(kept.read())
    with pytest.raises(UserError, match="has learnt all images"):
        run_folder_test(model, tmp_path, trusted=[SETTINGS["backbone"]])


def test_an_image_that_cant_be_read_is_told(model: Path, folder: Path) -> None:
    (folder / "ant/broken.png").write_bytes(b"no image")
    found = run_folder_test(model, folder, trusted=[SETTINGS["backbone"]])
    assert [Path(remark.path).name for remark in found.remarks] == ["broken.png"]
