"""What a frozen backbone made of the pictures that a model keeps: a small file beside each of them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from ssil.checkpoint import pack, write_atomic
from ssil.errors import UserError
from ssil.model.pictures import Picture, checksum, intact

NAME = "features"


def keep(path: Path, picture: Picture) -> dict[str, str]:
    """Write the features of a picture whose file is `path`; what is to be said of them in the model's own file."""
    if not picture.features:
        return {}
    data = pack({NAME: picture.features()})
    if not (file := _beside(path, checksum(data))).exists():
        write_atomic(file, data)
    return {NAME: checksum(data)}


def kept(path: Path, digest: str | None) -> Callable[[], Tensor] | None:
    """How to read the features of a picture; None if there are none, or their owner has deleted them."""
    if digest is None or not (file := _beside(path, digest)).exists():
        return None
    return partial(_read, file, digest)


def _beside(path: Path, digest: str) -> Path:
    return path.with_name(f"{path.stem}-{digest}.safetensors")


def _read(path: Path, digest: str) -> Tensor:
    try:
        return safetensors.torch.load(intact(path, digest))[NAME]
    except (KeyError, SafetensorError):
        raise UserError(f"model: {path} holds no features; delete it, or restore it") from None
