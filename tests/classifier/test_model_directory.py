"""A model's directory: what is published comes back, damage is named, a stranger's files run no code."""

import json
import shutil
from pathlib import Path

import pytest

from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.model_files import write_checked_json
from ssil.classifier.prediction import Classifier, predict
from ssil.classifier.update import update
from ssil.core.errors import UserError
from tiny_classifiers import labelled_images, settings

TRUSTED = (settings().backbone,)


@pytest.fixture(scope="module")
def classifiers() -> list[Classifier]:
    one = update(None, settings(), labelled_images(["ant", "bee/hive"])).classifier
    return [one, update(one, settings(), labelled_images(["cat", "dog"])).classifier]


@pytest.fixture(scope="module")
def published(classifiers: list[Classifier], tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = ModelDirectory(tmp_path_factory.mktemp("model") / "mine", TRUSTED)
    with directory.locked():
        for number, classifier in enumerate(classifiers, 1):
            directory.publish(classifier, [{"update": number}])
    return directory.folder


@pytest.fixture
def model(published: Path, tmp_path: Path) -> Path:
    """A copy to play with."""
    return Path(shutil.copytree(published, tmp_path / "moved to another place"))


def answers(classifier: Classifier) -> list[object]:
    return list(predict(classifier, [image for image, _ in labelled_images(["ant", "cat"], 3)]))


def opened(folder: Path) -> Classifier:
    """All of it, every image read."""
    classifier = ModelDirectory(folder, TRUSTED).load().classifier
    for group in (*classifier.exemplars, *classifier.holdout):
        for image in group:
            image.read()
    return classifier


def test_what_was_published_comes_back_wherever_it_is(model: Path, classifiers: list[Classifier]) -> None:
    directory = ModelDirectory(model, TRUSTED)
    assert (directory.numbers(), directory.current()) == ([1, 2], 2)
    for number, classifier in enumerate(classifiers, 1):
        found = directory.load(number)
        assert answers(found.classifier) == answers(classifier)
        assert found.classifier.settings == classifier.settings
        for kind in ("exemplars", "holdout"):
            there, here = (
                [[(one.digest, one.read()) for one in group] for group in getattr(of, kind)]
                for of in (found.classifier, classifier)
            )
            assert there == here
        assert found.history == ({"update": number},)
    assert directory.load(2).arrivals() == [1, 1, 2, 2]


def test_it_goes_on_learning_from_its_directory(model: Path) -> None:
    made = update(opened(model), settings(), labelled_images(["eel"])).classifier
    assert made.classes.names[-1] == "eel"


def test_versions_share_their_images(model: Path) -> None:
    files = [path for path in (model / "pictures").rglob("*") if path.is_file()]
    assert len({path.stem for path in files}) == len(files)
    assert {path.parent.name for path in files} == {"ant", "bee%2Fhive", "cat", "dog"}


def test_an_earlier_version_can_be_the_current_one(model: Path, classifiers: list[Classifier]) -> None:
    directory = ModelDirectory(model, TRUSTED)
    directory.point_to(1)
    assert answers(directory.load().classifier) == answers(classifiers[0])
    assert directory.publish(classifiers[1], []).number == 3
    with pytest.raises(UserError, match=r"version: 9 is not kept in .*; there are 1, 2, 3"):
        directory.load(9)


def test_an_image_that_its_owner_deleted_is_not_missed(model: Path) -> None:
    before = sum(map(len, opened(model).exemplars))
    gone = next((model / "pictures/ant").iterdir())
    gone.unlink()
    after = opened(model)
    kept = {image.digest for group in (*after.exemplars, *after.holdout) for image in group}
    assert gone.stem not in kept
    assert sum(map(len, after.exemplars)) >= before - 1


def test_another_format_is_refused(model: Path) -> None:
    write_checked_json(model / "current.json", {"format": 2, "version": 1})
    with pytest.raises(UserError, match="has format 2; this ssil reads format 1"):
        ModelDirectory(model).current()


def test_a_second_writer_is_refused(model: Path) -> None:
    directory = ModelDirectory(model)
    with (
        directory.locked(),
        pytest.raises(UserError, match="another process is at work"),
        ModelDirectory(model).locked(),
    ):
        pass


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(UserError, match="is not empty and holds no model"), ModelDirectory(tmp_path).locked():
        pass
    with pytest.raises(UserError, match="holds no model; make one with: ssil learn"):
        ModelDirectory(tmp_path).load()
    assert json.dumps(sorted(path.name for path in tmp_path.iterdir())) == '["letter.txt"]'
