"""Logits that DER++ stores with the exemplars of a model: files beside the images, carried along, erased with them."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from ssil.classifier.edits import forget
from ssil.classifier.image_file import ImageFile
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.model_tensors import stored_reader
from ssil.classifier.model_verification import verify_model
from ssil.classifier.prediction import Classifier
from ssil.classifier.update import update
from ssil.core.errors import UserError
from ssil.core.files import checksum
from ssil.core.tensor_files import pack
from tiny_classifiers import labelled_images, settings

OWN = settings(method="derpp", epochs=3, later_epochs=3)


def stored(image: ImageFile) -> Tensor:
    assert image.stored
    return image.stored()["logits"]


def by_image(classifier: Classifier) -> dict[str, Tensor]:
    return {image.original_digest: stored(image) for group in classifier.exemplars for image in group}


def exemplar_files(model: ModelDirectory) -> list[Path]:
    return sorted(model.folder.rglob("pictures/*/*.safetensors"))


@pytest.fixture(scope="module")
def classifiers() -> tuple[Classifier, Classifier]:
    one = update(None, OWN, labelled_images(["ant", "bee", "cat"])).classifier
    return one, update(one, OWN, labelled_images(["dog", "eel"])).classifier


@pytest.fixture
def model(tmp_path: Path, classifiers: tuple[Classifier, Classifier]) -> ModelDirectory:
    directory = ModelDirectory(tmp_path / "model", (OWN.backbone,))
    for classifier in classifiers:
        directory.publish(classifier, [{}])
    return directory


def test_exemplars_keep_the_logits_of_their_update(classifiers: tuple[Classifier, Classifier]) -> None:
    before, after = map(by_image, classifiers)
    for label, group in enumerate(classifiers[1].exemplars):
        for image in group:
            assert len(stored(image)) == (3 if label < 3 else 5)
            if label < 3:
                assert torch.equal(after[image.original_digest], before[image.original_digest])
    assert not any(image.stored for group in classifiers[1].holdout for image in group)


def test_what_is_learnt_from_the_directory_is_the_same_to_the_bit(
    model: ModelDirectory, classifiers: tuple[Classifier, Classifier]
) -> None:
    found = model.load().classifier
    assert {key: row.tolist() for key, row in by_image(found).items()} == {
        key: row.tolist() for key, row in by_image(classifiers[1]).items()
    }
    there, here = (update(one, OWN, labelled_images(["fox"])).classifier for one in (found, classifiers[1]))
    for name, tensor in here.snapshot.network.state_dict().items():
        assert torch.equal(there.snapshot.network.state_dict()[name], tensor)


def test_a_forgotten_class_leaves_no_logits(model: ModelDirectory) -> None:
    before = by_image(model.load().classifier)
    made = forget(model, "bee").classifier
    assert not list((model.folder / "pictures" / "bee").glob("*"))
    for label, group in enumerate(made.exemplars):
        for image in group:
            row, was = stored(image), before[image.original_digest]
            assert torch.equal(row, torch.cat([was[:1], was[2:]]))
            assert len(row) == (2 if label < 2 else 4)
    assert update(made, OWN, labelled_images(["gnu"])).classifier.classes.seen == 5


def test_deleted_logits_are_computed_again(model: ModelDirectory) -> None:
    for path in model.folder.rglob("pictures/ant/*.safetensors"):
        path.unlink()
    assert {defect.problem for defect in verify_model(model.folder, lambda *_: None, model.trusted)} == {"missing"}
    found = model.load().classifier
    assert not any(image.stored for image in found.exemplars[0])
    made = update(found, OWN, labelled_images(["fox"])).classifier
    assert {int(stored(image).isfinite().sum()) for image in made.exemplars[0]} == {5}  # by the model before the update
    assert {int(stored(image).isfinite().sum()) for image in made.exemplars[1]} == {3}


def test_damaged_logits_are_named(model: ModelDirectory) -> None:
    path = next(path for path in exemplar_files(model) if path.parent.name == "cat")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(UserError, match=rf"{path.name} is damaged .*; delete it, or restore it$"):
        update(model.load().classifier, OWN, labelled_images(["fox"]))
    (defect,) = verify_model(model.folder, lambda *_: None, model.trusted)
    assert defect.repair is not None
    defect.repair()
    assert not verify_model(model.folder, lambda *_: None, model.trusted)
    update(model.load().classifier, OWN, labelled_images(["fox"]))


@pytest.mark.parametrize("strange", [torch.zeros(9), torch.zeros(2, 2)])
def test_logits_of_other_classes_are_refused(strange: Tensor, classifiers: tuple[Classifier, Classifier]) -> None:
    one = classifiers[0]
    groups = tuple(tuple(image.with_stored({"logits": strange}) for image in group) for group in one.exemplars)
    forged = Classifier(one.settings, one.snapshot, groups, one.holdout)
    with pytest.raises(UserError, match=r"^model: logits of shape .* is not stored for 3 classes; delete the files"):
        update(forged, OWN, labelled_images(["fox"]))


def test_logits_of_different_dimensions_are_refused(classifiers: tuple[Classifier, Classifier]) -> None:
    one = classifiers[0]
    first = (one.exemplars[0][0].with_stored({"logits": torch.zeros(2, 2)}), *one.exemplars[0][1:])
    forged = Classifier(one.settings, one.snapshot, (first, *one.exemplars[1:]), one.holdout)
    with pytest.raises(UserError, match=r"^model: what is stored with its exemplars differs in dimensions"):
        update(forged, OWN, labelled_images(["fox"]))


@pytest.mark.parametrize("data", [b"", b"no tensors", pack({"logits": torch.zeros(3, dtype=torch.long)})])
def test_a_file_of_something_else_is_named(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / f"a-{checksum(data)}.safetensors"
    path.write_bytes(data)
    read = stored_reader(tmp_path / "a.png", checksum(data))
    assert read
    with pytest.raises(UserError, match=rf"^model: .*{path.name} holds no values of an exemplar; delete it"):
        read()
