"""Labelled images."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from torch import Tensor


class Images(Protocol):
    """Pictures that can be fetched by index: resident in memory, or decoded when asked for."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width, channels of what `fetch` returns."""
        ...

    @property
    def prefetch_depth(self) -> int:
        """How many batches to ask for before they are needed, for fetching takes time; 0 if it takes none."""
        ...

    def __len__(self) -> int: ...

    def to(self, device: torch.device) -> "Images":
        """The same pictures, handed out on another device."""
        ...

    def take(self, indices: Tensor) -> "Images":
        """Some of the pictures."""
        ...

    def fetch(self, indices: Tensor, draws: Any = None) -> Tensor:
        """The pictures at these indices: uint8 (B, H, W, C), on the device where training happens.

        `draws` (an `ssil.data.augmentation.Draws`, one for each index) ask for training views, if fetching makes them.
        """
        ...

    def hold(self, indices: Tensor, form: Literal["bytes", "decoded"]) -> None:
        """Keep these in memory, and no others, if not all are there anyway; fetching them gives the same as before."""
        ...

    def content(self) -> Iterable[bytes]:
        """What tells these pictures from others: pixels, or digests."""
        ...

    def keys(self) -> list[bytes]:
        """A digest of each picture's pixels."""
        ...


@dataclass(frozen=True)
class Samples:
    """Pictures and their labels (int64, on the CPU)."""

    images: Images
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)
