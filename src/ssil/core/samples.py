"""Images with labels, and the interface by which learning gets images from wherever they are."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from torch import Tensor


class Images(Protocol):
    """Images that are fetched by index: from memory, or decoded from files when they are needed."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """The height, width and channels of the images that `fetch` returns."""
        ...

    @property
    def prefetch_depth(self) -> int:
        """The number of batches to fetch in advance; 0 if fetching takes no time."""
        ...

    def __len__(self) -> int: ...

    def to(self, device: torch.device) -> "Images":
        """Return the same images, fetched to another device."""
        ...

    def take(self, indices: Tensor) -> "Images":
        """Return the images at the given indices as a collection of their own."""
        ...

    def fetch(self, indices: Tensor, draws: Any = None) -> Tensor:
        """Return the images at the given indices: uint8 (B, H, W, C), on the device of `to`.

        Args:
            indices: The images to fetch.
            draws: The random numbers of their augmentation (`ssil.data.augmentation.Draws`, one per index), for
                collections that crop while they decode; None for the test view.
        """
        ...

    def hold(self, indices: Tensor, form: Literal["bytes", "decoded"]) -> None:
        """Keep the images at the given indices, and no others, in memory; fetching them returns the same as before.

        Does nothing if all images are in memory anyway.
        """
        ...

    def content(self) -> Iterable[bytes]:
        """Return the bytes that identify these images: their pixels, or digests."""
        ...

    def keys(self) -> list[bytes]:
        """Return a digest of the pixels of each image."""
        ...


@dataclass(frozen=True)
class Samples:
    """Images and their labels (int64, on the CPU)."""

    images: Images
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)
