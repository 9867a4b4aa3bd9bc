"""Resizing of decoded images, antialiased as in Pillow."""

import torch
from torch import Tensor
from torch.nn import functional as F

from ssil.core.network_input import Interpolation


def resized(images: Tensor, size: tuple[int, int], interpolation: Interpolation) -> Tensor:
    """Return uint8 images (B, C, H, W) at another height and width, uint8 again.

    Only a CPU resizes bytes; other devices resize floating-point numbers, which are then rounded.

    >>> resized(torch.tensor([[[[0, 255]]]], dtype=torch.uint8), (1, 4), "bilinear").tolist()
    [[[[0, 64, 191, 255]]]]
    """
    if images.device.type == "cpu":
        return F.interpolate(images, size, mode=interpolation, antialias=True)
    real = F.interpolate(images.float(), size, mode=interpolation, antialias=True)
    return real.round_().clamp_(0, 255).to(torch.uint8)
