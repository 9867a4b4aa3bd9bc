"""Vision models of the transformers library as frozen backbones, on tiny random ones."""

import json
import shutil
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from ssil.classifier.image_file import ImageFile
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.prediction import predict
from ssil.classifier.publish_update import publish_update
from ssil.core.errors import UserError
from ssil.nn import hub_models
from ssil.nn.backbones import find_backbone
from ssil.nn.first_weights import decided_settings, find_first_weights, read_first_weights
from ssil.nn.heads import LinearHead
from ssil.nn.hub_models import find_hub_model
from ssil.nn.network import Network, build

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

SMALL = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
IMAGES = {"image_size": 32, "patch_size": 16}
PROCESSOR = {
    "do_resize": True,
    "size": {"height": 32, "width": 32},
    "resample": 2,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
}


def vit() -> Any:
    """A published classifier: its file has no weights for ViT's pooling layer."""
    return transformers.ViTForImageClassification(transformers.ViTConfig(**SMALL, **IMAGES))


def dinov2() -> Any:
    return transformers.Dinov2Model(transformers.Dinov2Config(**SMALL, **IMAGES))


def convnext() -> Any:
    config = transformers.ConvNextConfig(hidden_sizes=[4, 4, 4, 8], depths=[1, 1, 1, 1], image_size=32)
    return transformers.ConvNextModel(config)


def clip() -> Any:
    text = SMALL | {"vocab_size": 20, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
    return transformers.CLIPModel(
        transformers.CLIPConfig(text_config=text, vision_config=SMALL | IMAGES, projection_dim=8)
    )


def saved(model: Any, folder: Path, processor: dict[str, Any] = PROCESSOR) -> Path:
    transformers.logging.disable_progress_bar()
    model.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    return folder


def features_of_vit(model: Any, images: torch.Tensor) -> torch.Tensor:
    output: torch.Tensor = model.vit(images).last_hidden_state[:, 0]
    return output


def pooled(model: Any, images: torch.Tensor) -> torch.Tensor:
    output: torch.Tensor = model(images).pooler_output
    return output


def pooled_images(model: Any, images: torch.Tensor) -> torch.Tensor:
    output: torch.Tensor = model.vision_model(pixel_values=images).pooler_output
    return output


def network_of(folder: Path) -> Network:
    found = find_first_weights(f"hf:{folder}")
    assert found.backbone
    return build(found.backbone, LinearHead, 3, "batch", torch.Generator(), init=read_first_weights(found)).eval()


@pytest.mark.parametrize(
    ("make", "expected"),
    [(vit, features_of_vit), (dinov2, pooled), (convnext, pooled), (clip, pooled_images)],
)
@torch.inference_mode()
def test_features_are_the_librarys_own(
    make: Callable[[], Any], expected: Callable[[Any, torch.Tensor], torch.Tensor], tmp_path: Path
) -> None:
    model = make().eval()
    network = network_of(saved(model, tmp_path))
    images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    assert network(images).features.shape == (2, 8)
    torch.testing.assert_close(network(images).features, expected(model, images))
    assert network(images).stages == ()


def photograph(name: str, copy: int) -> bytes:
    own, noise = np.random.default_rng(list(name.encode())), np.random.default_rng([copy, *name.encode()])
    pattern = np.kron(own.integers(256, size=(4, 4, 3)), np.ones((8, 8, 1))) + noise.normal(0, 12, (32, 32, 3))
    file = BytesIO()
    Image.fromarray(pattern.clip(0, 255).astype(np.uint8)).save(file, "PNG")
    return file.getvalue()


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    for name in ("ant", "bee"):
        (tmp_path / "photographs" / name).mkdir(parents=True)
        for copy in range(6):
            (tmp_path / f"photographs/{name}/{copy}.png").write_bytes(photograph(name, copy))
    return tmp_path / "photographs"


def test_a_model_directory_needs_nothing_from_outside(tmp_path: Path, photographs: Path) -> None:
    folder = saved(vit(), tmp_path / "vit")
    given = {"freeze": True, "epochs": 2, "memory": 12}
    published = publish_update(tmp_path / "model", str(photographs), given, init=f"hf:{folder}").version
    shutil.rmtree(folder)
    loaded = ModelDirectory(tmp_path / "model").load().classifier
    assert loaded.settings.input == published.classifier.settings.input
    assert loaded.settings.image_size == 32
    image = ImageFile.from_bytes("bee", photograph("bee", 9))
    (before,), (after,) = (list(predict(one, [image])) for one in (published.classifier, loaded))
    assert before == after


def test_such_a_backbone_is_only_frozen(tmp_path: Path) -> None:
    found = find_first_weights(f"hf:{saved(vit(), tmp_path)}")
    with pytest.raises(UserError, match=r"freeze: hf:.* is a model that can't be trained further here; give --freeze"):
        decided_settings(found, {})
    assert decided_settings(found, {"freeze": True})["input"].mean == (0.5, 0.5, 0.5)


def without(file: str) -> Callable[[Path], None]:
    return lambda folder: (folder / file).unlink()


def changed(**keys: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | keys))

    return change


def damaged(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"0" * 100)


def without_a_tensor(folder: Path) -> None:
    import safetensors.torch

    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    name = next(name for name in tensors if "layernorm" in name)
    del tensors[name]
    safetensors.torch.save_file(tensors, folder / "model.safetensors", {"format": "pt"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("config.json"), r"config\.json can't be read \(No such file or directory\); it takes config\.json"),
        (without("preprocessor_config.json"), r"preprocessor_config\.json can't be read"),
        (without("model.safetensors"), r"model\.safetensors can't be read"),
        (damaged, r"model\.safetensors can't be read .*; get it again"),
        (without_a_tensor, "lack .*layernorm"),
        (changed(model_type="bert"), "'bert' is no vision model of the transformers library"),
        (changed(model_type="timm_wrapper"), "'timm_wrapper' is no vision model"),
        (changed(attn_implementation="someone/kernel"), "is built on another model, which would be loaded too"),
        (changed(backbone="someone/else"), "is built on another model"),
        (changed(hidden_size="wide"), "init: "),
    ],
)
def test_what_is_missing_or_odd_is_named(change: Callable[[Path], None], message: str, tmp_path: Path) -> None:
    change(saved(vit(), tmp_path))
    with pytest.raises(UserError, match=message):
        find_first_weights(f"hf:{tmp_path}").tensors()


def test_code_of_a_model_is_never_run(tmp_path: Path) -> None:
    saved(vit(), tmp_path)
    changed(auto_map={"AutoModel": "mine.Mine", "AutoConfig": "mine.Mine"}, _attn_implementation="someone/kernel")(
        tmp_path
    )
    (tmp_path / "mine.py").write_text("raise SystemExit('the code of the model was run')")
    network_of(tmp_path)


@pytest.mark.parametrize("name", ["hf:{", "hf:[]", "hf:{}", 'hf:{"model_type":"vit","hidden_size":"wide"}'])
def test_names_that_are_no_configuration(name: str) -> None:
    with pytest.raises(UserError):
        find_backbone(name)


def test_grey_images_and_group_norm_are_refused(tmp_path: Path) -> None:
    name = find_hub_model(f"hf:{saved(vit(), tmp_path)}").backbone
    for channels, norm in ((1, "batch"), (3, "group")):
        with pytest.raises(UserError, match="backbone: vit is for colour images"):
            build(name, LinearHead, channels, norm, torch.Generator())  # type: ignore[arg-type]


def test_a_name_on_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, asked = saved(vit(), tmp_path), list[tuple[str, str]]()

    def download(name: str, file: str) -> Path:
        asked.append((name, file))
        return folder / file

    monkeypatch.setattr(hub_models, "downloaded", download)
    assert find_hub_model("hf:someone/vit").folder == folder
    files = {"preprocessor_config.json", "model.safetensors", "config.json"}
    assert {*asked} == {("someone/vit", file) for file in files}
    with pytest.raises(UserError, match=r"'no such thing' is no directory, and no name on the hub"):
        find_hub_model("hf:no such thing")


def test_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(vit(), tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "transformers"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(UserError, match=r"init: a model of the transformers library takes: pip install 'ssil\[hub\]'"):
        find_hub_model(f"hf:{tmp_path}")
