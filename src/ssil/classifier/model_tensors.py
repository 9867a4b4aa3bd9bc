"""Reading and writing the tensors of a model directory: weights, and features of kept images."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from ssil.classifier.image_file import ImageFile
from ssil.classifier.model_files import read_checked
from ssil.core.errors import UserError, one_line
from ssil.core.files import checksum, write_atomic
from ssil.core.tensor_files import pack

FEATURES = "features"
"""The tensor in a file of features, and the key of its checksum in model.json."""


def read_weights(path: Path, digest: str) -> dict[str, Tensor]:
    """Return a safetensors file's tensors; raise UserError if its checksum differs or a value is not finite."""
    try:
        data = path.read_bytes()
        if checksum(data) != digest:
            raise UserError(f"model: {path} is damaged (its checksum differs); restore it, or roll back")
        tensors = safetensors.torch.load(data)
    except (OSError, SafetensorError, MemoryError) as error:
        raise UserError(f"model: {path} can't be read ({one_line(error)}); restore it, or roll back") from None
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise UserError(f"model: {name} in {path} has values that are no numbers; restore it, or roll back")
    return tensors


def write_features(image_path: Path, image: ImageFile) -> dict[str, str]:
    """Write an image's features beside its file; return the entry of model.json that refers to them, if there are any.

    The file's name contains both checksums: the image's and its own.
    """
    if not image.features:
        return {}
    data = pack({FEATURES: image.features()})
    if not (path := _features_path(image_path, checksum(data))).exists():
        write_atomic(path, data)
    return {FEATURES: checksum(data)}


def features_reader(image_path: Path, digest: str | None) -> Callable[[], Tensor] | None:
    """Return a function that reads an image's features; None if it has none, or the user has deleted the file."""
    if digest is None or not (path := _features_path(image_path, digest)).exists():
        return None
    return partial(_read_features, path, digest)


def _features_path(image_path: Path, digest: str) -> Path:
    return image_path.with_name(f"{image_path.stem}-{digest}.safetensors")


def _read_features(path: Path, digest: str) -> Tensor:
    try:
        return safetensors.torch.load(read_checked(path, digest))[FEATURES]
    except (KeyError, SafetensorError):
        raise UserError(f"model: {path} holds no features; delete it, or restore it") from None
