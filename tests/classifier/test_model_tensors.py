"""Files of features in a model directory: beside their images, shared by versions, validated, erased with them."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from frozen_classifiers import classifiers, features, frozen, members
from ssil.classifier.edits import forget, rename
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.model_tensors import features_reader
from ssil.classifier.update import update
from ssil.core.errors import UserError
from ssil.core.files import checksum
from ssil.core.tensor_files import pack
from tiny_classifiers import labelled_images, settings


@pytest.fixture
def model(tmp_path: Path) -> ModelDirectory:
    directory = ModelDirectory(tmp_path / "model", (settings().backbone,))
    for classifier in classifiers():
        directory.publish(classifier, [{}])
    return directory


def test_what_is_learnt_from_the_directory_is_the_same_to_the_bit(model: ModelDirectory) -> None:
    found = model.load().classifier
    assert [features(one).tolist() for one in members(found)] == [
        features(one).tolist() for one in members(classifiers()[1])
    ]
    there, here = (update(one, frozen(), labelled_images(["fox"])).classifier for one in (found, classifiers()[1]))
    for name, tensor in here.snapshot.network.state_dict().items():
        assert torch.equal(there.snapshot.network.state_dict()[name], tensor)


def test_versions_share_the_files_of_features(model: ModelDirectory) -> None:
    files = list((model.folder / "pictures").rglob("*.safetensors"))
    assert len(files) == len({one.digest for classifier in classifiers() for one in members(classifier)})
    assert {path.stem.partition("-")[0] for path in files} == {one.stem for one in model.folder.rglob("*.png")}


def test_a_forgotten_class_leaves_no_features(model: ModelDirectory) -> None:
    rename(model, "ant", "wasp")
    made = forget(model, "bee").classifier
    assert {path.parent.name for path in model.folder.rglob("pictures/*/*.safetensors")} == {
        "ant", "wasp", "cat", "dog", "eel",
    }  # fmt: skip
    assert all(image.features for image in members(made))
    assert update(made, frozen(later_epochs=1), labelled_images(["gnu"])).classifier.classes.seen == 5


def test_deleted_features_are_computed_again(model: ModelDirectory) -> None:
    for path in model.folder.rglob("pictures/ant/*.safetensors"):
        path.unlink()
    found = model.load().classifier
    assert not any(image.features for image in (*found.exemplars[0], *found.holdout[0]))
    made = update(found, frozen(later_epochs=1), labelled_images(["fox"])).classifier
    known = {one.digest: features(one) for one in members(classifiers()[1])}
    for image in (*made.exemplars[0], *made.holdout[0]):
        torch.testing.assert_close(features(image), known[image.digest], rtol=0, atol=1e-6)


def test_damaged_features_are_named(model: ModelDirectory) -> None:
    (path,) = model.folder.rglob(f"{classifiers()[1].exemplars[2][0].digest}-*.safetensors")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(UserError, match=rf"{path.name} is damaged .*; delete it, or restore it$"):
        update(model.load().classifier, frozen(), labelled_images(["fox"]))


@pytest.mark.parametrize("strange", [torch.zeros(3), torch.zeros(16, 1), torch.full((16,), torch.nan)])
def test_features_of_something_else_are_refused(strange: Tensor) -> None:
    one = classifiers()[0]
    first, *rest = one.exemplars[0]
    forged = replace(one, exemplars=((first.with_features(strange), *rest), *one.exemplars[1:]))
    with pytest.raises(UserError, match=rf"^model: the features of {first.name} are not of its backbone"):
        update(forged, frozen(), labelled_images(["fox"]))


@pytest.mark.parametrize("data", [b"", b"no tensors", pack({"other": torch.zeros(3)})])
def test_a_file_of_something_else_is_named(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / f"a-{checksum(data)}.safetensors"
    path.write_bytes(data)
    read = features_reader(tmp_path / "a.png", checksum(data))
    assert read
    with pytest.raises(UserError, match=rf"^model: .*{path.name} holds no features; delete it, or restore it$"):
        read()
