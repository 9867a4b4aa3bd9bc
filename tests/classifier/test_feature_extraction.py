"""Updates with a frozen backbone: features are computed once, kept with their images, and trained on in their place."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from sklearn.base import clone
from torch import Tensor

from frozen_classifiers import backbone, classifiers, features, frozen, members
from ssil.classifier.classifier_settings import make_settings
from ssil.classifier.estimator import IncrementalClassifier
from ssil.classifier.feature_extraction import trained_network
from ssil.classifier.holdout import evaluate
from ssil.classifier.image_file import ImageFile
from ssil.classifier.prediction import Classifier, predict
from ssil.classifier.update import changed_settings, update
from ssil.cli import main
from ssil.core.errors import UserError
from ssil.core.tensor_files import write_tensors
from ssil.nn import pretrained
from ssil.nn.heads import LinearHead
from ssil.nn.network import Network, build
from ssil.nn.pretrained import Pretrained, torchvision_name
from tiny_classifiers import folder, labelled_images, settings

METHODS = ("ssil", "lucir", "podnet", "icarl", "bic", "wa", "joint")


def accuracy(classifier: Classifier, names: list[str]) -> float:
    fresh = labelled_images(names, count=6, first=100)
    found = predict(classifier, [image for image, _ in fresh], top=1)
    return sum(prediction.ranking[0][0] == name for prediction, (_, name) in zip(found, fresh, strict=True)) / len(
        fresh
    )


@pytest.mark.parametrize("method", METHODS)
def test_heads_learn_and_the_backbone_stays_as_it_came(method: str) -> None:
    one, two = classifiers(method)
    assert accuracy(one, ["ant", "bee", "cat"]) > 0.7
    assert accuracy(two, ["ant", "bee", "cat", "dog", "eel"]) > 0.5
    for made in (one, two):
        for name, tensor in made.snapshot.network.backbone.state_dict().items():
            assert torch.equal(tensor, backbone().tensors[name])
    assert not made.snapshot.network.training
    assert not any(parameter.requires_grad for parameter in made.snapshot.network.parameters())


@pytest.fixture
def batch_sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the sizes of the batches of images that a whole network is given, as they come."""
    seen = list[int]()

    def forward(self: Network, images: Tensor, _forward: Any = Network.forward) -> Any:
        if images.ndim == 4:
            seen.append(len(images))
        return _forward(self, images)

    monkeypatch.setattr(Network, "forward", forward)
    return seen


def test_features_of_each_image_are_computed_once(batch_sizes: list[int]) -> None:
    one = update(None, frozen(epochs=2), labelled_images(["ant", "bee", "cat"]), init=backbone()).classifier
    assert sum(batch_sizes) == 30
    two = update(one, frozen(later_epochs=2), labelled_images(["dog", "eel"])).classifier
    update(two, frozen(later_epochs=2), labelled_images(["ant"]))  # of which the model keeps some
    again = 10 - len(two.exemplars[0]) - len(two.holdout[0])
    assert evaluate(two)
    assert sum(batch_sizes) == 30 + 20 + again


def test_features_are_those_of_a_single_pass_over_all_images() -> None:
    two = classifiers()[1]
    shown = [image for image, _ in labelled_images(["ant", "bee", "cat", "dog", "eel"])]
    everything = update(
        None, frozen(memory=100, epochs=1), labelled_images(["ant", "bee", "cat", "dog", "eel"]), init=backbone()
    )
    single = {image.digest: features(image) for image in members(everything.classifier)}
    assert single.keys() == {image.digest for image in shown}
    for image in members(two):
        torch.testing.assert_close(features(image), single[image.digest], rtol=0, atol=1e-6)


def test_hold_out_results_are_those_of_the_whole_network() -> None:
    two = classifiers()[1]
    found, holdout = evaluate(two), [(image, label) for label, group in enumerate(two.holdout) for image in group]
    assert found
    names = [prediction.ranking[0][0] for prediction in predict(two, [image for image, _ in holdout])]
    hits = sum(name == two.classes.names[label] for name, (_, label) in zip(names, holdout, strict=True))
    assert hits == sum(result.correct for result in found.classes.values())


def test_only_pretrained_backbones_are_frozen_and_they_stay_so() -> None:
    with pytest.raises(UserError, match=r"^freeze: a backbone with random weights .*; give --init too$"):
        update(None, frozen(), labelled_images(["ant", "bee"]))
    with pytest.raises(UserError, match="freeze: the model was made with False, which can't be changed"):
        changed_settings(settings(), {"freeze": True})


def test_an_observer_is_called_for_features_first() -> None:
    paces = list[tuple[str, float]]()
    own = frozen(epochs=1)
    update(
        None, own, labelled_images(["ant", "bee"]), lambda _, pace: paces.append((pace.phase, pace.done)), backbone()
    )
    assert paces[0] == ("features", 1.0)
    assert {phase for phase, _ in paces[1:]}.isdisjoint({"features"})
    assert {phase for phase, _ in paces[2:]} == {"main"}


def test_as_many_epochs_as_fit(monkeypatch: pytest.MonkeyPatch, batch_sizes: list[int]) -> None:
    monkeypatch.setattr("ssil.classifier.epochs_in_time.PROBE_SECONDS", 0.02)
    made = update(None, frozen(epochs=50), labelled_images(["ant", "bee"]), init=backbone(), minutes=1e-5)
    assert made.epochs == 1
    assert sum(batch_sizes) == 20


def test_scikit_learns_conventions(tmp_path: Path) -> None:
    init = tmp_path / "mine.safetensors"
    resnet = build("resnet14", LinearHead, 1, "batch", torch.Generator().manual_seed(0)).backbone
    write_tensors(init, resnet.state_dict())
    usual: dict[str, Any] = {"backbone": "resnet14", "image_size": 8, "grey": True, "memory": 40, "batch": 8}
    model = IncrementalClassifier(**usual, freeze=True, init=str(init))
    assert clone(model).get_params()["init"] == str(init)

    def album(*names: str) -> tuple[list[Image.Image], list[str]]:
        shown = labelled_images(names)
        return [Image.open(BytesIO(one.read())) for one, _ in shown], [name for _, name in shown]

    model.partial_fit(*album("ant", "bee")).partial_fit(*album("cat"))
    assert model.score(*album("ant", "bee", "cat")) > 0.5
    model.save(tmp_path / "model")
    init.unlink()  # it is in the model now
    back = IncrementalClassifier.load(tmp_path / "model").partial_fit(*album("dog"))
    assert back.classes_.tolist() == ["ant", "bee", "cat", "dog"]
    trained = back.classifier_.snapshot.network.backbone.state_dict()
    assert all(torch.equal(trained[name], tensor) for name, tensor in resnet.state_dict().items())


def test_imagenets_weights_see_images_normalised_as_imagenets(tmp_path: Path) -> None:
    """Those of the usual ResNet-18, with torchvision's names."""
    network = build("resnet18", LinearHead, 3, "batch", torch.Generator().manual_seed(0)).eval()
    init = Pretrained("f", {torchvision_name(name): tensor for name, tensor in network.backbone.state_dict().items()})
    pixels = np.random.default_rng(0).integers(256, size=(4, 40, 40, 3), dtype=np.uint8)
    shown = [ImageFile.from_bytes(f"{n}.png", png(one)) for n, one in enumerate(pixels)]
    own = make_settings({"backbone": "resnet18", "image_size": 40, "freeze": True, "epochs": 1})
    made = update(None, own, list(zip(shown, "aabb", strict=True)), init=init).classifier
    with torch.inference_mode():
        images = (torch.from_numpy(pixels) / 255 - torch.tensor([0.485, 0.456, 0.406])) / torch.tensor(
            [0.229, 0.224, 0.225]
        )
        wanted = network(images.permute(0, 3, 1, 2)).features
    for image in members(made):
        torch.testing.assert_close(features(image), wanted[int(image.name[0])], rtol=1e-4, atol=1e-5)


def png(pixels: NDArray[np.uint8]) -> bytes:
    file = BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def test_a_large_image_is_kept_small_with_the_features_that_it_had() -> None:
    def enlarged(image: ImageFile) -> ImageFile:
        large = Image.open(BytesIO(image.read())).resize((50, 50))
        return ImageFile.from_bytes(image.name, png(np.asarray(large)))

    arrived = [(enlarged(image), name) for image, name in labelled_images(["ant", "bee"])]
    made = update(None, frozen(epochs=1), arrived, init=backbone()).classifier
    (seen,) = trained_network(frozen(), made.snapshot).with_features([[image for image, _ in arrived]])
    known = {image.digest: features(image) for image in seen}
    for image in members(made):
        assert Image.open(BytesIO(image.read())).size == (16, 16)
        torch.testing.assert_close(features(image), known[image.origin], rtol=0, atol=1e-6)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A name of a hub that holds one model, a ResNet-14 for grey images."""
    network = build("resnet14", LinearHead, 1, "batch", torch.Generator().manual_seed(0))
    write_tensors(tmp_path / "blob", network.backbone.state_dict())
    library = SimpleNamespace(hf_hub_download=lambda name, file: str(tmp_path / "blob"))
    monkeypatch.setitem(sys.modules, "huggingface_hub", library)
    yield "some/resnet14"
    pretrained.downloaded.cache_clear()


def test_from_the_command_line(hub: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = folder(tmp_path / "first", ["ant", "bee"]), folder(tmp_path / "second", ["cat"])
    model = str(tmp_path / "model")
    small = ["--backbone", "resnet14", "--image-size", "8", "--grey", "--memory", "20", "--batch", "8"]
    assert main(["learn", model, str(first), *small, "--freeze"]) == 2
    assert "give --init too" in capsys.readouterr().err
    assert main(["learn", model, str(first), *small, "--freeze", "--init", hub]) == 0
    assert main(["learn", model, str(second), "--freeze"]) == 0
    capsys.readouterr()
    assert main(["predict", model, str(first / "ant/0.png"), "--json", "--top", "9"]) == 0
    assert {one["class"] for one in json.loads(capsys.readouterr().out)["classes"]} == {"ant", "bee", "cat"}
    assert main(["inspect", model, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["freeze"] is True


MEMORY = """
from pathlib import Path
from ssil.classifier.classifier_settings import make_settings
from ssil.classifier.feature_extraction import trained_network
from ssil.classifier.publish_update import first_settings
from tiny_classifiers import labelled_images

options, weights = first_settings({}, None)
network = trained_network(make_settings(options), None, weights)
images = [image for image, _ in labelled_images(["ant", "bee"], count=200)]
resident = lambda: int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6
first = network.with_features([images[:100]])
before = resident()
second = network.with_features([images[100:]])
print(resident() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_features_of_many_images_need_no_more_memory_than_those_of_few() -> None:
    """Each image took 2 MB that was never used again, as its features lay between the batches' memory."""
    places = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True, env=places)
    assert float(found.stdout) < 200, "MB for 300 images more"
