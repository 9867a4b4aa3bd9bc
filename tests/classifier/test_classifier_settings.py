"""First weights decide the backbone and the preprocessing of a classifier, which keeps them."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from ssil.classifier.classifier_settings import make_settings, with_start_settings, with_weights_settings
from ssil.classifier.estimator import IncrementalClassifier
from ssil.classifier.image_file import ImageFile
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.prediction import predict
from ssil.classifier.publish_update import publish_update
from ssil.classifier.tuning import tuned_method
from ssil.core.errors import UserError
from ssil.nn.heads import LinearHead
from ssil.nn.network import Network, build
from ssil.nn.pretrained import Pretrained
from ssil.nn.weights import named_weights

LITE0 = named_weights("efficientnet_lite0")
FAST: dict[str, Any] = {"image_size": 32, "freeze": True, "epochs": 2, "later_epochs": 1, "memory": 12}


def photograph(name: str, copy: int) -> Image.Image:
    own, noise = np.random.default_rng(list(name.encode())), np.random.default_rng([copy, *name.encode()])
    pattern = np.kron(own.integers(256, size=(4, 5, 3)), np.ones((10, 10, 1))) + noise.normal(0, 20, (40, 50, 3))
    return Image.fromarray(pattern.clip(0, 255).astype(np.uint8))


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    for name in ("ant", "bee"):
        (tmp_path / "photographs" / name).mkdir(parents=True)
        for copy in range(6):
            photograph(name, copy).save(tmp_path / f"photographs/{name}/{copy}.png")
    return tmp_path / "photographs"


def test_weights_decide_backbone_size_and_input() -> None:
    settings = make_settings(with_weights_settings({"memory": 9}, LITE0))
    assert (settings.backbone, settings.image_size, settings.memory) == ("efficientnet_lite0", 224, 9)
    preprocessing = settings.preprocessing()
    assert preprocessing.size == 224
    assert preprocessing.mean == (127 / 255,) * 3
    assert preprocessing.interpolation == "bicubic"
    assert preprocessing.centre is None


def test_an_image_size_of_the_users_stays() -> None:
    settings = make_settings(with_weights_settings({"image_size": 96}, LITE0))
    assert settings.preprocessing().size == 96
    assert settings.preprocessing().interpolation == "bicubic"


def test_without_named_weights_nothing_changes() -> None:
    settings = make_settings(with_weights_settings({"memory": 9}, None))
    assert settings == make_settings({"memory": 9})
    assert "input" not in settings.model_dump()
    assert "input" not in json.loads(settings.model_dump_json())
    assert repr(settings.preprocessing()).startswith(
        "Look(size=64, channels=3, augment='shift', flip=True, mean=(0.485"
    )


@pytest.mark.parametrize(
    ("given", "init", "scratch", "expected", "weights"),
    [
        ({}, None, False, {"freeze": True, "method": "slda", "views": 2}, "efficientnet_lite0"),
        ({"method": "ft"}, None, False, {"freeze": True, "method": "ft", "views": 2}, "efficientnet_lite0"),
        ({"tune": "last"}, None, False, {"tune": "last"}, "efficientnet_lite0"),
        ({"freeze": False}, None, False, {"freeze": False}, "efficientnet_lite0"),
        ({"backbone": "resnet14"}, None, False, {"backbone": "resnet14"}, None),
        ({"epochs": 3}, None, True, {"epochs": 3}, None),
        ({}, "mine.safetensors", False, {}, "mine.safetensors"),
    ],
)
def test_where_a_new_classifier_starts(
    given: dict[str, Any], init: str | None, scratch: bool, expected: dict[str, Any], weights: str | None
) -> None:
    assert with_start_settings(given, init, scratch=scratch) == (expected, weights)


@pytest.mark.parametrize(
    ("given", "init", "scratch", "message"),
    [
        ({}, "efficientnet_lite0", True, "scratch: random weights are all trained"),
        ({"freeze": True}, None, True, "scratch: random weights are all trained"),
        ({"tune": "all", "freeze": True}, None, False, "tune: it trains known weights"),
        ({"tune": "all", "backbone": "resnet14"}, None, False, "tune: it trains known weights"),
    ],
)
def test_starts_that_contradict_each_other(
    given: dict[str, Any], init: str | None, scratch: bool, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        with_start_settings(given, init, scratch=scratch)


def test_without_any_setting(photographs: Path, tmp_path: Path) -> None:
    """Of frozen features no old image is kept, but the hold-out set."""
    classifier = publish_update(tmp_path / "model", str(photographs), {"image_size": 32}).version.classifier
    chosen = classifier.settings
    assert (chosen.backbone, chosen.method, chosen.freeze) == ("efficientnet_lite0", "slda", True)
    assert [len(group) for group in classifier.exemplars] == [0, 0]
    assert [len(group) for group in classifier.holdout] == [1, 1]
    with pytest.raises(UserError, match="scratch: the model has learnt already"):
        publish_update(tmp_path / "model", str(photographs), {}, scratch=True)


def test_the_estimator_without_any_setting() -> None:
    X, y = zip(*((photograph(name, copy), name) for name in ("ant", "bee") for copy in range(6)), strict=True)
    model = IncrementalClassifier(image_size=32).fit(X, y)
    assert model.classifier_.settings.method == "slda"
    assert model.predict([photograph("ant", 9), photograph("bee", 9)]).tolist() == ["ant", "bee"]


def test_from_random_weights(photographs: Path, tmp_path: Path) -> None:
    short = {"image_size": 32, "epochs": 1}
    settings = publish_update(tmp_path / "model", str(photographs), short, scratch=True).version.classifier.settings
    assert (settings.backbone, settings.method, settings.freeze, settings.input) == ("resnet18", "eeil", False, None)


@pytest.mark.parametrize("tune", ["last", "all"])
def test_tuning_trains_what_it_says(tune: str, photographs: Path, tmp_path: Path) -> None:
    given = {"tune": tune, "image_size": 32, "epochs": 1, "later_epochs": 1, "memory": 12}
    trained = publish_update(tmp_path / "model", str(photographs), given).version.classifier.snapshot.network.backbone
    before, after = LITE0.tensors(), trained.state_dict()
    changed = {name.rpartition(".")[0] for name in before if not torch.equal(before[name], after[name])}
    assert {"last.conv", "stages.6.0.project.conv"} <= changed
    assert ("stem.conv" in changed) == ("stages.0.0.project.norm" in changed) == (tune == "all")


def test_tuning_the_last_stage_of_a_network_without_stages(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="tune: the backbone identity has no stages"):
        tuned_method(make_settings({"tune": "last", "backbone": "identity"}), network_of("identity"))


def network_of(backbone: str) -> Network:
    return build(backbone, LinearHead, 3, "batch", torch.Generator())


def expected_features(images: list[Image.Image], size: int) -> torch.Tensor:
    """Of Lite0, without any of our code that reads, resizes or normalises."""
    network = build(LITE0.backbone, LinearHead, 3, "batch", torch.Generator(), init=Pretrained("f", LITE0.tensors()))
    pixels = np.stack([np.asarray(image.resize((size, size), Image.Resampling.BICUBIC)) for image in images])
    with torch.inference_mode():
        features: torch.Tensor = network.eval()(((torch.from_numpy(pixels).float() - 127) / 128).permute(0, 3, 1, 2))[1]
        return features


def test_a_model_keeps_its_preprocessing(photographs: Path, tmp_path: Path) -> None:
    published = publish_update(tmp_path / "model", str(photographs), FAST, init="efficientnet_lite0")
    stored = json.loads((tmp_path / "model/versions/0001/model.json").read_bytes())["settings"]
    assert stored["backbone"] == "efficientnet_lite0"
    assert stored["input"] == {**LITE0.input.model_dump(mode="json")}
    classifier = ModelDirectory(tmp_path / "model").load().classifier
    assert classifier.settings == published.version.classifier.settings
    (kept, *_), _ = classifier.exemplars
    assert kept.features
    expected = expected_features([Image.open(BytesIO(kept.read()))], 32)
    torch.testing.assert_close(kept.features()[None], expected, rtol=0.02, atol=0.02)  # rounded to bytes in between
    (tmp_path / "photographs/cat").mkdir()
    photograph("cat", 0).save(tmp_path / "photographs/cat/0.png")
    photograph("cat", 1).save(tmp_path / "photographs/cat/1.png")
    later = publish_update(tmp_path / "model", str(photographs), {}).version
    assert later.classifier.settings.input == LITE0.input
    file = BytesIO()
    photograph("bee", 9).save(file, "PNG")
    (prediction,) = predict(later.classifier, [ImageFile.from_bytes("bee", file.getvalue())], top=3)
    assert len(prediction.ranking) == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"backbone": "resnet18"},
            "backbone: the weights efficientnet_lite0 are not of resnet18; leave out --backbone",
        ),
        ({"grey": True}, "grey: the weights efficientnet_lite0 are for colour images; leave out --grey, or train"),
    ],
)
def test_what_contradicts_the_weights_is_refused(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        publish_update(tmp_path / "model", "no folder", given, init="efficientnet_lite0")
    assert not (tmp_path / "model").exists()


def test_scikit_learns_interface(tmp_path: Path) -> None:
    X, y = zip(*((photograph(name, copy), name) for name in ("ant", "bee") for copy in range(6)), strict=True)
    model = IncrementalClassifier(init="efficientnet_lite0", **FAST).fit(X, y)
    assert model.classifier_.settings.backbone == "efficientnet_lite0"
    assert model.classifier_.settings.input == LITE0.input
    assert model.get_params()["backbone"] is None
    model.save(tmp_path / "model")
    loaded = IncrementalClassifier.load(tmp_path / "model")
    loaded.partial_fit([photograph("cat", copy) for copy in range(6)], ["cat"] * 6)
    assert loaded.classifier_.settings.input == LITE0.input
    assert loaded.predict_proba([photograph("cat", 9)]).shape == (1, 3)
