"""Classifiers whose network grows: saved, verified, exported, updated and forgotten as any other."""

import pytest
import torch

from ssil.classifier.classifier_settings import ClassifierSettings
from ssil.classifier.edits import forget
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.model_verification import verify_model
from ssil.classifier.onnx_export import export_classifier
from ssil.classifier.prediction import Classifier, predict
from ssil.classifier.tuning import tuned_method
from ssil.classifier.update import update
from ssil.core.errors import UserError
from tiny_classifiers import labelled_images, settings

BRANCHES = {"der": [1, 2, 2], "memo": [1, 2, 2], "foster": [1, 1, 1]}
"""After two updates with new classes and one with more images of a known class."""
UPDATES = (["ant", "bee"], ["cat", "dog"], ["ant"])


def own(method: str) -> ClassifierSettings:
    return settings(method=method, epochs=3, later_epochs=3)


def tensors(classifier: Classifier) -> list[torch.Tensor]:
    return [*classifier.snapshot.network.state_dict().values()]


@pytest.fixture(scope="module", params=BRANCHES)
def grown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[ModelDirectory, str]:
    """A directory with three versions, each learnt from the one before as it was read again."""
    given = own(request.param)
    directory = ModelDirectory(tmp_path_factory.mktemp(request.param) / "model", (given.backbone,))
    with directory.locked():
        for number, names in enumerate(UPDATES):
            before = directory.load().classifier if number else None
            made = update(before, given, labelled_images(names, first=10 * number)).classifier
            directory.publish(made, [{}])
            assert all(map(torch.equal, tensors(made), tensors(directory.load().classifier)))
    return directory, request.param


def test_every_version_comes_back_with_its_branches(grown: tuple[ModelDirectory, str]) -> None:
    directory, method = grown
    found = [directory.load(number).classifier.snapshot.network.backbone.width for number in directory.numbers()]
    assert [width // 16 for width in found] == BRANCHES[method]


def test_a_grown_model_is_sound_and_exported(grown: tuple[ModelDirectory, str]) -> None:
    directory, _ = grown
    assert verify_model(directory.folder, lambda *_: None, directory.trusted) == []
    assert all((directory.version(number) / "model.onnx").exists() for number in directory.numbers())
    assert export_classifier(directory.load().classifier, 3)  # which compares ONNX Runtime with PyTorch


def test_an_update_goes_on_from_what_was_saved(grown: tuple[ModelDirectory, str]) -> None:
    """With the same weights as one that was never saved."""
    directory, method = grown
    first = update(None, own(method), labelled_images(UPDATES[0])).classifier
    second = update(first, own(method), labelled_images(UPDATES[1], first=10)).classifier
    assert all(map(torch.equal, tensors(second), tensors(directory.load(2).classifier)))


def test_a_forgotten_class_leaves_the_branches(grown: tuple[ModelDirectory, str]) -> None:
    directory, method = grown
    rest = forget(directory, "bee").classifier
    assert rest.classes.names == ("ant", "cat", "dog")
    assert rest.snapshot.network.backbone.width // 16 == BRANCHES[method][-1]
    ranking = next(iter(predict(rest, [labelled_images(["cat"], 1)[0][0]], top=9))).ranking
    assert {name for name, _ in ranking} == {"ant", "cat", "dog"}


def test_a_last_stage_alone_is_not_for_branches(grown: tuple[ModelDirectory, str]) -> None:
    directory, method = grown
    given = own(method).model_copy(update={"tune": "last"})
    with pytest.raises(UserError, match=rf"^tune: {method} decides itself which parts .*; give --tune all$"):
        tuned_method(given, directory.load(1).classifier.snapshot.network)
