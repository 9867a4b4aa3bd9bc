"""Writing safetensors files, atomically and without pickle."""

from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
from torch import Tensor

from ssil.core.files import write_atomic


def pack(tensors: Mapping[str, Tensor]) -> bytes:
    """Return the bytes of a safetensors file. All tensors become contiguous: memory layouts are not kept."""
    return safetensors.torch.save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write a safetensors file atomically."""
    write_atomic(path, pack(tensors))
