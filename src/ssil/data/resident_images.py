"""Images that are held as pixels in memory, on any device."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

import torch
from torch import Tensor

from ssil.data.augmentation import Draws, Transform


@dataclass(frozen=True, eq=False)
class Resident:
    """Images held as one uint8 tensor (N, H, W, C); implements `ssil.core.samples.Images`.

    >>> images = Resident(torch.zeros(5, 8, 8, 3, dtype=torch.uint8))
    >>> len(images), images.shape, images.fetch(torch.tensor([4, 0])).shape
    (5, (8, 8, 3), torch.Size([2, 8, 8, 3]))
    """

    pixels: Tensor

    prefetch_depth = 0

    def __post_init__(self) -> None:
        if self.pixels.dtype != torch.uint8 or self.pixels.ndim != 4:
            raise ValueError(f"pixels must be uint8 (N, H, W, C), not {self.pixels.dtype} {tuple(self.pixels.shape)}")

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width, channels."""
        _, height, width, channels = self.pixels.shape
        return height, width, channels

    def __len__(self) -> int:
        return len(self.pixels)

    def fetch(self, indices: Tensor, draws: Draws | None = None) -> Tensor:
        """Return the images at these indices (on any device), on the device of the pixels; draws do not matter."""
        # Fifteen times as fast as pixels[indices] on a CPU: it copies whole images.
        return self.pixels.index_select(0, indices.to(self.pixels.device))

    def to(self, device: torch.device | str) -> "Resident":
        """Return the same images on another device."""
        return Resident(self.pixels.to(device))

    def take(self, indices: Tensor) -> "Resident":
        """Return a copy of some of the images."""
        return Resident(self.fetch(indices))

    def hold(self, indices: Tensor, form: str) -> None:
        """Do nothing: the images are in memory."""

    def content(self) -> Iterator[bytes]:
        """Yield all pixels."""
        for block in torch.arange(len(self)).split(1024):
            yield self.fetch(block).cpu().numpy().tobytes()

    def keys(self) -> list[bytes]:
        """Return the SHA-256 of each image's pixels."""
        size = math.prod(self.shape)
        return [sha256(block[at : at + size]).digest() for block in self.content() for at in range(0, len(block), size)]


def vectors(values: Tensor) -> Resident:
    """Return vectors (N, width) as images of their bytes with `width` channels; `Unchanged` turns them into vectors.

    >>> images = vectors(torch.eye(5, 3))
    >>> len(images), images.shape, Unchanged().test(images.fetch(torch.tensor([2]))).tolist()
    (5, (1, 4, 3), [[0.0, 0.0, 1.0]])
    """
    count, width = values.shape
    return Resident(values.contiguous().view(torch.uint8).view(count, 1, values.element_size(), width))


@dataclass(frozen=True)
class Unchanged(Transform):
    """From the images of `vectors` to the vectors (B, width), in training too.

    Where `stored` is None, the vectors' own type must be the `dtype` that is asked for.
    """

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    stored: torch.dtype | None = None

    def train(self, pixels: Tensor, draws: Draws, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return the vectors; draws do not matter."""
        return self.test(pixels, dtype)

    def test(self, pixels: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return the vectors."""
        return pixels.flatten(1).view(self.stored or dtype).to(dtype)
