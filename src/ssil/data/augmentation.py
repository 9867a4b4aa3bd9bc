"""Augmentation and normalisation of whole batches, on the device where the pixels are."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ssil.data.cropping import NUMBERS


class Draws(NamedTuple):
    """What is drawn for each picture of a batch: the crop's corner in the padded picture, and mirrored or not.

    Where pictures are cropped as they are decoded, also the numbers that decide the part, (B, NUMBERS).
    """

    dy: Tensor
    dx: Tensor
    flip: Tensor
    crop: Tensor | None = None

    def take(self, slots: Tensor | slice) -> "Draws":
        """The draws of some of the batch's slots, for a process that has only those."""
        crop = self.crop if self.crop is None else self.crop[slots]
        return Draws(self.dy[slots], self.dx[slots], self.flip[slots], crop)


@dataclass(frozen=True)
class Transform:
    """From uint8 pictures (B, H, W, C) to network input (B, C, H, W), in channels-last layout.

    `mean` and `std` are per channel, for pixels in [0, 1]. In training a picture is mirrored (where `flip` says so)
    with probability 1/2, and cropped at random from itself with `pad` black pixels around it. With `crop`, a random
    part of the picture is taken already when it is decoded.

    >>> transform = Transform(mean=(0.5,), std=(0.5,), pad=1)
    >>> pixels = torch.tensor([[0, 255], [255, 0]], dtype=torch.uint8).view(1, 2, 2, 1)
    >>> transform.test(pixels).flatten().tolist()
    [-1.0, 1.0, 1.0, -1.0]
    >>> down = Draws(dy=torch.tensor([0]), dx=torch.tensor([1]), flip=torch.tensor([False]))
    >>> transform.train(pixels, down).flatten().tolist()
    [-1.0, -1.0, -1.0, 1.0]
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    pad: int = 0
    flip: bool = False
    crop: bool = False

    def draw(self, count: int, generator: torch.Generator) -> Draws:
        """The random numbers for a batch of this many pictures, on the CPU."""
        dy, dx = torch.randint(2 * self.pad + 1, (2, count), generator=generator)
        flip = torch.randint(2, (count,), generator=generator).bool()
        crop = torch.rand(count, NUMBERS, generator=generator) if self.crop else None
        return Draws(dy, dx, flip & self.flip, crop)

    def train(self, pixels: Tensor, draws: Draws, dtype: torch.dtype = torch.float32) -> Tensor:
        """Pictures mirrored and cropped as drawn, normalised."""
        drawn = (numbers.to(pixels.device).split(_few(pixels)) for numbers in (draws.dy, draws.dx, draws.flip))
        parts = zip(pixels.split(_few(pixels)), *drawn, strict=True)
        return self._normalised(pixels, (self._augmented(*part) for part in parts), dtype)

    def test(self, pixels: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Pictures as they are, normalised."""
        return self._normalised(pixels, pixels.split(_few(pixels)), dtype)

    def _augmented(self, pixels: Tensor, dy: Tensor, dx: Tensor, flip: Tensor) -> Tensor:
        if self.flip:
            pixels = _mirror(pixels, flip)
        if self.pad:
            pixels = _crop(pixels, dy, dx, self.pad)
        return pixels

    def _normalised(self, pixels: Tensor, parts: Iterable[Tensor], dtype: torch.dtype) -> Tensor:
        """A batch of the shape of `pixels` from its parts."""
        batch, height, width, channels = pixels.shape
        work = torch.promote_types(dtype, torch.float32)
        mean, std = (torch.tensor(values, dtype=work, device=pixels.device) for values in (self.mean, self.std))
        scale, shift = (1 / (255 * std)).repeat(width), (-mean / std).repeat(width)
        # Whole rows at a time and in place: broadcasting over three channels alone takes twenty times as long.
        rows = torch.empty(batch, height, width * channels, dtype=work, device=pixels.device)
        for out, part in zip(rows.split(_few(pixels)), parts, strict=True):
            out.copy_(part.reshape(out.shape)).mul_(scale).add_(shift)
        return rows.to(dtype).view(batch, height, width, channels).permute(0, 3, 1, 2)


LARGE = 2**16


def _few(pixels: Tensor) -> int:
    """How many pictures to work on at once: all, but large ones one by one on a CPU, to stay in its cache."""
    alone = pixels.device.type == "cpu" and pixels[:1].numel() >= LARGE
    return 1 if alone else max(1, len(pixels))


def generic(height: int, width: int, channels: int) -> Transform:
    """For pictures of which nothing is known: shifted by up to an eighth, and mirrored only if they have colour.

    Grey ones are often characters. Mean and spread are fixed, not measured, so that classes that arrive later are seen
    in the same way; for colour they are the usual ones for photographs.
    """
    pad = min(height, width) // 8
    if channels == 3:
        return Transform((0.485, 0.456, 0.406), (0.229, 0.224, 0.225), pad=pad, flip=True)
    return Transform((0.5,) * channels, (0.25,) * channels, pad=pad)


def _mirror(pixels: Tensor, flip: Tensor) -> Tensor:
    """Those pictures mirrored left to right for which `flip` is true."""
    count = len(pixels)
    if count == 1:
        return pixels.flip(2) if flip else pixels
    choice = torch.arange(count, device=pixels.device) + count * flip
    return torch.cat([pixels, pixels.flip(2)]).index_select(0, choice)


def _crop(pixels: Tensor, dy: Tensor, dx: Tensor, pad: int) -> Tensor:
    """Crops of the pictures' own size with their corners at (dy, dx) of the padded pictures."""
    batch, height, width, channels = pixels.shape
    padded = F.pad(pixels, (0, 0, pad, pad, pad, pad))
    _, high, wide, _ = padded.shape
    first = torch.arange(batch, device=pixels.device) * high + dy
    starts = (first[:, None] + torch.arange(height, device=pixels.device)) * wide + dx[:, None]
    # A row of a crop is a run of consecutive bytes, so each is copied in one piece.
    runs = padded.flatten().unfold(0, width * channels, 1)
    return runs.index_select(0, starts.flatten() * channels).view(batch, height, width, channels)
