"""Vectors in place of pictures: features computed beforehand, on which the same training goes on."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ssil.data.augment import Draws, Transform
from ssil.data.resident import Resident


def vectors(values: Tensor) -> Resident:
    """Vectors (N, width) as pictures of their bytes, with `width` channels, which `Unchanged` makes vectors again.

    >>> images = vectors(torch.eye(5, 3))
    >>> len(images), images.shape, Unchanged().test(images.fetch(torch.tensor([2]))).tolist()
    (5, (1, 4, 3), [[0.0, 0.0, 1.0]])
    """
    count, width = values.shape
    return Resident(values.contiguous().view(torch.uint8).view(count, 1, values.element_size(), width))


@dataclass(frozen=True)
class Unchanged(Transform):
    """From the bytes of `vectors` to the vectors (B, width), in training too; `dtype` is the one they had."""

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()

    def train(self, pixels: Tensor, draws: Draws, dtype: torch.dtype = torch.float32) -> Tensor:
        """The vectors; nothing that is drawn changes them."""
        return self.test(pixels, dtype)

    def test(self, pixels: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """The vectors."""
        return pixels.flatten(1).view(dtype)
