"""Vision models of the `transformers` library as frozen backbones: `--init hf:NAME`, or `hf:DIRECTORY`.

Only code of the installed library is used, never a model's own, and only safetensors files are read. The name of such a
backbone is `hf:` and the model's configuration as JSON, so that a model directory needs nothing from outside.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ssil.core.errors import UserError, one_line
from ssil.core.files import checksum, read_file
from ssil.core.network_input import NetworkInput
from ssil.core.plugins import HUB_PREFIX
from ssil.nn.image_processor import network_input
from ssil.nn.pretrained import HUB_FILE, HUB_NAME, downloaded
from ssil.nn.resnet import Backbone, Norm

CONFIG, PROCESSOR = "config.json", "preprocessor_config.json"
NOT_OURS = ("timm_wrapper", "perceiver", "imagegpt", "shieldgemma2")
"""Image classifiers of the library that need another library, or do not take one image."""
MORE = ("dinov3_vit", "dinov3_convnext")
LEFT_OUT = ("architectures", "auto_map", "dtype", "torch_dtype", "id2label", "label2id", "quantization_config")
REFUSED = ("backbone", "use_timm_backbone", "attn_implementation", "experts_implementation")
"""Keys of a configuration by which the library would load code or weights from elsewhere."""


class TransformersBackbone(Backbone):
    """A vision model of the library. Its features are the model's own summary of an image.

    That is the pooled output, or where pooling has weights of its own (ViT), which published files often lack, the
    class token; for maps without pooling, their average. There are no stage maps.
    """

    def __init__(self, config: Mapping[str, Any]):
        super().__init__()
        self.config = dict(config)
        self.model = _model(self.config)
        self.width = _width(self.config)

    def initialise(self, generator: torch.Generator) -> None:
        """Make the model anew, with its tables of positions; its weights are random until they are loaded."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(generator.initial_seed())
            self.model = _model(self.config)

    def forward(self, images: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the features, and no stage maps."""
        return _summary(self.model(pixel_values=images)), ()


def _summary(output: Any) -> Tensor:
    if (pooled := output.get("pooler_output")) is not None:
        features: Tensor = pooled.flatten(1)
        return features
    hidden: Tensor = output.last_hidden_state
    return hidden[:, 0] if hidden.ndim == 3 else hidden.mean((2, 3))


def _model(config: Mapping[str, Any]) -> nn.Module:
    """Return a model with random weights, without a pooling layer that has weights of its own."""
    with _quiet() as library:
        model: nn.Module = library.AutoModel.from_config(_configuration(config))
    pooler = getattr(model, "pooler", None)
    if isinstance(pooler, nn.Module) and any(isinstance(part, nn.Linear) for part in pooler.modules()):
        model.pooler = None  # type: ignore[assignment]
    return model.eval()


def _width(config: Mapping[str, Any]) -> int:
    """Return the number of features, computed from shapes alone."""
    with torch.device("meta"):
        side = config.get("image_size", 224)
        images = torch.empty(1, config.get("num_channels", 3), side, side)
        return _summary(_model(config)(pixel_values=images)).shape[1]


def hub_backbone(name: str) -> Callable[..., Backbone]:
    """Return the function that makes the backbone of this name, `hf:` and a configuration as JSON."""
    try:
        config = json.loads(name.removeprefix(HUB_PREFIX))
        _configuration(config)
    except UserError:
        raise
    except Exception as error:  # of any type: the name may be a stranger's
        raise UserError(f"backbone: {name[:40]!r} is no model ({one_line(error)}); give --init hf:NAME") from None

    def make(in_channels: int, norm: Norm, _: bool = True, /) -> Backbone:
        if in_channels != config.get("num_channels", 3) or norm != "batch":
            raise UserError(f"backbone: {config['model_type']} is for colour images, and can't have --norm {norm}")
        return TransformersBackbone(config)

    return make


def _configuration(config: Mapping[str, Any]) -> Any:
    """Return the library's configuration; raise UserError for a model that is not of images, or not all its own."""
    kind, known = config.get("model_type"), _vision_models()
    if kind not in known:
        raise UserError(f"init: {kind!r} is no vision model of the transformers library that is installed")
    if any(config.get(key) for key in REFUSED):
        raise UserError(f"init: this {kind} is built on another model, which would be loaded too; give another")
    kept = {key: value for key, value in config.items() if not key.startswith("_") and key not in LEFT_OUT}
    try:
        with _quiet() as library:
            return library.AutoConfig.for_model(**kept)
    except UserError:
        raise
    except Exception as error:  # of any type: the configuration is a stranger's
        raise UserError(
            f"init: the configuration of this {kind} is not valid ({one_line(error)}); get it again"
        ) from None


def _vision_models() -> set[str]:
    """Return the library's names of models that turn an image into features."""
    with _quiet():
        names = import_module("transformers.models.auto.modeling_auto")
    towers = {kind for kind in names.MODEL_MAPPING_NAMES if kind.endswith("_vision_model")}
    return {*names.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES, *towers, *MORE} - {*NOT_OURS}


@contextmanager
def _quiet() -> Iterator[Any]:
    """Yield the library, which is kept from printing; raise UserError if it is not installed."""
    try:
        library = import_module("transformers")
    except ImportError as error:
        raise UserError("init: a model of the transformers library takes: pip install 'ssil[hub]'") from error
    library.logging.set_verbosity_error()
    library.logging.disable_progress_bar()
    yield library


@dataclass(frozen=True)
class HubModel:
    """First weights in the library's format: config.json, preprocessor_config.json, model.safetensors."""

    name: str
    folder: Path
    config: Mapping[str, Any]
    input: NetworkInput

    @property
    def backbone(self) -> str:
        """The name of the backbone: its configuration."""
        kept = {key: value for key, value in self.config.items() if key not in {*LEFT_OUT, "transformers_version"}}
        return HUB_PREFIX + json.dumps(kept, sort_keys=True, separators=(",", ":"))

    @property
    def sha256(self) -> str:
        """The SHA-256 of the file of tensors."""
        return checksum(_content(self.folder / HUB_FILE), 64)

    def tensors(self) -> Mapping[str, Tensor]:
        """Return the tensors by the names of `TransformersBackbone`; raise UserError if some are missing."""
        _content(self.folder / HUB_FILE)
        model = _model(self.config)
        try:
            with _quiet():
                loaded, report = type(model).from_pretrained(  # type: ignore[attr-defined]
                    self.folder,
                    config=_configuration(self.config),
                    use_safetensors=True,
                    local_files_only=True,
                    output_loading_info=True,
                )
        except Exception as error:  # of any type: the file is a stranger's
            raise UserError(f"init: {self.folder / HUB_FILE} can't be read ({one_line(error)}); get it again") from None
        own, state = model.state_dict(), loaded.float().state_dict()
        if missing := sorted({*own} & {*report["missing_keys"]}):
            raise UserError(f"init: the weights of {self.name} lack {missing[0]}; give a whole model")
        return {f"model.{key}": state[key] for key in own}


def find_hub_model(name: str) -> HubModel:
    """Return the model of `hf:DIRECTORY` or `hf:NAME`; raise UserError if a file is missing or of no vision model."""
    given = name.removeprefix(HUB_PREFIX)
    folder = Path(given).expanduser()
    if not folder.is_dir():
        folder = _downloaded_folder(given)
    config, processor = (_read_json(folder / file) for file in (CONFIG, PROCESSOR))
    vision = config.get("vision_config", config)
    if vision is not config and "model_type" not in vision:
        vision = {**vision, "model_type": f"{config.get('model_type')}_vision_model"}
    _configuration(vision)
    return HubModel(name, folder, vision, network_input(processor, name))


def _downloaded_folder(name: str) -> Path:
    if not HUB_NAME.fullmatch(name):
        raise UserError(f"init: {name!r} is no directory, and no name on the hub such as facebook/dinov2-small")
    return [downloaded(name, file) for file in (PROCESSOR, HUB_FILE, CONFIG)][-1].parent


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(_content(path)))
    except (ValueError, TypeError, RecursionError) as error:
        raise UserError(f"init: {path} can't be read ({one_line(error)}); get it again") from None


def _content(path: Path) -> bytes:
    try:
        return read_file(path)
    except OSError as error:
        raise UserError(
            f"init: {path} can't be read ({error.strerror or error}); it takes {CONFIG}, {PROCESSOR} and {HUB_FILE}"
        ) from None
