"""Methods that add up features count each image once, keep none for training, and forget whom they have counted."""

import json
from pathlib import Path

import pytest
import torch

from frozen_classifiers import backbone, frozen
from ssil.classifier.edits import forget
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.model_files import write_checked_json
from ssil.classifier.prediction import Classifier
from ssil.classifier.update import NothingNewError, update
from ssil.core.errors import UserError
from ssil.learning.snapshot import MAIN
from tiny_classifiers import labelled_images

NAMES = ["ant", "bee", "cat"]


def counts(classifier: Classifier) -> list[int]:
    found: torch.Tensor = classifier.snapshot.scorers[MAIN].get_buffer("counts")
    return found.sum(0).tolist()


def learnt(count: int = 10, **given: object) -> Classifier:
    return update(None, frozen(method="slda", **given), labelled_images(NAMES, count), init=backbone()).classifier


def test_images_that_come_again_are_not_counted_twice() -> None:
    once = learnt()
    assert counts(once) == [8, 8, 8]
    assert [len(group) for group in once.exemplars] == [0, 0, 0]
    more = labelled_images(NAMES, 12)  # ten known ones, hold-out images among them, and two others
    twice = update(once, once.settings, more).classifier
    assert counts(twice) == [10, 10, 10]
    everything = [*labelled_images(NAMES, 10), *labelled_images(NAMES, 2, first=10)]
    assert counts(update(None, once.settings, everything, init=backbone()).classifier) == [10, 10, 10]
    with pytest.raises(NothingNewError):
        update(twice, once.settings, labelled_images(NAMES, 12))


def test_equal_images_of_one_update_are_counted_once() -> None:
    doubled = [*labelled_images(NAMES), *labelled_images(NAMES)]
    made = update(None, frozen(method="slda"), doubled, init=backbone()).classifier
    assert counts(made) == counts(learnt())


def test_the_checksums_are_stored_and_forgotten(tmp_path: Path) -> None:
    directory = ModelDirectory(tmp_path / "model", (frozen().backbone,))
    with directory.locked():
        directory.publish_change(None, learnt())
    loaded = directory.load().classifier
    assert loaded.counted == learnt().counted
    digest = loaded.counted[1][0]
    forget(directory, "bee")
    assert len(directory.load().classifier.counted) == 2
    assert not any(digest in path.read_text() for path in (tmp_path / "model").rglob("model.json"))
    again = update(directory.load().classifier, frozen(method="slda"), labelled_images(["bee"])).classifier
    assert counts(again) == [8, 8, 8]


@pytest.mark.parametrize("value", [[["0"]], [["x" * 32], [], []], [[7], [], []], 7, [[], []]])
def test_checksums_of_a_stranger(value: object, tmp_path: Path) -> None:
    directory = ModelDirectory(tmp_path / "model", (frozen().backbone,))
    with directory.locked():
        directory.publish_change(None, learnt())
    path = tmp_path / "model/versions/0001/model.json"
    description = json.loads(path.read_text())
    description.pop("checksum")
    write_checked_json(path, {**description, "counted": value})
    with pytest.raises(UserError, match="is not what it should be"):
        directory.load()


def test_no_image_at_all_may_be_kept() -> None:
    result = update(None, frozen(method="slda", memory=0), labelled_images(NAMES), init=backbone())
    assert result.after is None
    assert result.classifier.holdout == ((), (), ())
    assert counts(result.classifier) == [10, 10, 10]


def test_a_method_that_trains_on_old_images_must_keep_some() -> None:
    with pytest.raises(UserError, match="memory: eeil trains on old images again; give --memory 1 or more"):
        update(None, frozen(memory=0), labelled_images(NAMES), init=backbone())
