"""Reading and writing the tensors of a model directory: weights, and tensors of kept images."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from ssil.classifier.cross_validation import ValidatedImages, restore_validated
from ssil.classifier.image_file import ImageFile
from ssil.classifier.model_files import read_checked
from ssil.core.errors import UserError, one_line
from ssil.core.files import checksum, write_atomic
from ssil.core.tensor_files import pack

FEATURES, STORED = "features", "stored"
"""The keys in model.json of the checksums of an image's two files of tensors; the former is also its only tensor."""


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


def write_tensors(image_path: Path, image: ImageFile) -> dict[str, str]:
    """Write an image's features, and what is stored with it, beside its file; return the entries of model.json.

    A file's name contains both checksums: the image's and its own. The entries refer to the files; what the image does
    not have has none.
    """
    features, stored = image.features, image.stored
    kept = ({FEATURES: {FEATURES: features()}} if features else {}) | ({STORED: stored()} if stored else {})
    return {kind: _write(image_path, tensors) for kind, tensors in kept.items()}


def _write(image_path: Path, tensors: Mapping[str, Tensor]) -> str:
    data = pack(tensors)
    if not (path := tensors_path(image_path, checksum(data))).exists():
        write_atomic(path, data)
    return checksum(data)


def tensors_path(image_path: Path, digest: str) -> Path:
    """Return the path of a file with tensors of an image."""
    return image_path.with_name(f"{image_path.stem}-{digest}.safetensors")


def features_reader(image_path: Path, digest: str | None) -> Callable[[], Tensor] | None:
    """Return a function that reads an image's features; None if it has none, or the user has deleted the file."""
    return partial(_read_features, path, str(digest)) if (path := _existing(image_path, digest)) else None


def stored_reader(image_path: Path, digest: str | None) -> Callable[[], Mapping[str, Tensor]] | None:
    """Return a function that reads what is stored with an image; None if nothing is, or the file was deleted."""
    return partial(_read_stored, path, str(digest)) if (path := _existing(image_path, digest)) else None


def _existing(image_path: Path, digest: str | None) -> Path | None:
    return path if digest is not None and (path := tensors_path(image_path, digest)).exists() else None


def _read_features(path: Path, digest: str) -> Tensor:
    try:
        return safetensors.torch.load(read_checked(path, digest))[FEATURES]
    except (KeyError, SafetensorError):
        raise UserError(f"model: {path} holds no features; delete it, or restore it") from None


def _read_stored(path: Path, digest: str) -> Mapping[str, Tensor]:
    try:
        tensors = safetensors.torch.load(read_checked(path, digest))
        if all(values.is_floating_point() and values.ndim for values in tensors.values()):
            return tensors
    except SafetensorError:
        pass
    raise UserError(f"model: {path} holds no values of an exemplar; delete it, or restore it")


def write_validated(path: Path, images: ValidatedImages | None) -> dict[str, str]:
    """Write the images of a cross-validation; return the entry of model.json that refers to them, if there are any."""
    if images is None:
        return {}
    data = pack(images.tensors())
    write_atomic(path, data)
    return {"validated": checksum(data)}


def read_validated(path: Path, digest: str | None, classes: int) -> ValidatedImages | None:
    """Return the images of a cross-validation; None if a version has none, or `forget` has removed them.

    Raises:
        UserError: The file is damaged.
        ValueError: Its tensors don't fit each other, or the number of classes.
    """
    if digest is None or not path.exists():
        return None
    return restore_validated(read_weights(path, digest), classes)
