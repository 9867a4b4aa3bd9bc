"""Augmentation and normalisation of whole batches: shifts, flips, and the random numbers of crops."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from ssil.core.errors import UserError, one_line
from ssil.core.network_input import Interpolation
from ssil.data.crop_boxes import CROP_NUMBERS
from ssil.data.resizing import resized

LARGE_IMAGE = 2**16
Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class OwnAugmentation:
    """A function of the user's that changes one training image at a time.

    Each image has a generator of its own, so that it does not matter in which process, or part of a batch, it is.
    """

    name: str
    function: Callable[[Pixels, np.random.Generator], Pixels]

    def __call__(self, pixels: Tensor, seeds: Tensor) -> Tensor:
        """Return the changed images (B, H, W, C); raise UserError if the function fails or gives something else."""
        changed = [self._image(*pair) for pair in zip(pixels.cpu().numpy(), seeds.tolist(), strict=True)]
        return torch.from_numpy(np.stack(changed)).to(pixels.device)

    def _image(self, image: Pixels, seed: int) -> Pixels:
        try:
            found = np.asarray(self.function(image.copy(), np.random.default_rng(seed)))
        except Exception as error:  # of any type: the function is the user's
            raise UserError(f"augment: {self.name} raised {one_line(error)}; mend the function") from error
        if found.dtype != np.uint8 or found.shape != image.shape:
            given, wanted = f"{found.dtype} {found.shape}", f"uint8 {image.shape}"
            raise UserError(
                f"augment: {self.name} gave {given} in place of {wanted}; return an image like the given one"
            )
        return np.ascontiguousarray(found)


class Draws(NamedTuple):
    """The random numbers of a batch: each crop's corner in the padded image, and whether the image is flipped.

    Where images are cropped as they are decoded, `crop` has the numbers for `random_box`, (B, CROP_NUMBERS). Where
    brightness is jittered, `brightness` has the factors.
    """

    dy: Tensor
    dx: Tensor
    flip: Tensor
    crop: Tensor | None = None
    brightness: Tensor | None = None
    seeds: Tensor | None = None
    """Of the generators for a function of the user's, one per image."""

    def take(self, slots: Tensor | slice) -> "Draws":
        """Return the draws of some images of the batch, for a process that has only those."""
        some = (None if drawn is None else drawn[slots] for drawn in (self.crop, self.brightness, self.seeds))
        return Draws(self.dy[slots], self.dx[slots], self.flip[slots], *some)


@dataclass(frozen=True)
class Transform:
    """From uint8 images (B, H, W, C) to network input (B, C, H, W), in channels-last layout.

    `mean` and `std` are per channel, for pixels in [0, 1]. In training an image is flipped left to right (if `flip`)
    with probability 1/2, and shifted: cropped at random from itself with `pad` black pixels around it. With `crop`, a
    random crop is taken when the image is decoded. With `brightness` b, pixels are multiplied by a factor between 1 - b
    and 1 + b, rounded down and cut at 255. With `size`, images are resized to it before they are normalised. An `own`
    augmentation changes the images as they were decoded.

    >>> transform = Transform(mean=(0.5,), std=(0.5,), pad=1)
    >>> pixels = torch.tensor([[0, 255], [255, 0]], dtype=torch.uint8).view(1, 2, 2, 1)
    >>> transform.test(pixels).flatten().tolist()
    [-1.0, 1.0, 1.0, -1.0]
    >>> draws = Draws(dy=torch.tensor([0]), dx=torch.tensor([1]), flip=torch.tensor([False]))
    >>> transform.train(pixels, draws).flatten().tolist()
    [-1.0, -1.0, -1.0, 1.0]
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    pad: int = 0
    flip: bool = False
    crop: bool = False
    size: int | None = None
    interpolation: Interpolation = "bilinear"
    brightness: float = field(default=0.0, repr=False)  # names of cached features, which it leaves alone, have the rest
    own: OwnAugmentation | None = field(default=None, repr=False)

    def input_shape(self, height: int, width: int) -> tuple[int, int]:
        """Return the height and width of the network's input for images of this size."""
        return (self.size, self.size) if self.size else (height, width)

    def draw(self, count: int, generator: torch.Generator) -> Draws:
        """Return the random numbers for a batch of `count` images, on the CPU."""
        dy, dx = torch.randint(2 * self.pad + 1, (2, count), generator=generator)
        flip = torch.randint(2, (count,), generator=generator).bool()
        crop = torch.rand(count, CROP_NUMBERS, generator=generator) if self.crop else None
        factors = 1 + self.brightness * (2 * torch.rand(count, generator=generator) - 1) if self.brightness else None
        seeds = torch.randint(2**63 - 1, (count,), generator=generator) if self.own else None
        return Draws(dy, dx, flip & self.flip, crop, factors, seeds)

    def train(self, pixels: Tensor, draws: Draws, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return a training batch: brightened, augmented by the user's function, flipped and shifted, normalised."""
        if draws.brightness is not None:
            pixels = _brightened(pixels, draws.brightness.to(pixels.device))
        if self.own and draws.seeds is not None:
            pixels = self.own(pixels, draws.seeds)
        chunk = self._chunk_size(pixels)
        drawn = (numbers.to(pixels.device).split(chunk) for numbers in (draws.dy, draws.dx, draws.flip))
        chunks = zip(pixels.split(chunk), *drawn, strict=True)
        return self._normalised(pixels, (self._augmented(*one) for one in chunks), dtype)

    def test(self, pixels: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return a test batch: the images as they are, normalised."""
        return self._normalised(pixels, pixels.split(self._chunk_size(pixels)), dtype)

    def _augmented(self, pixels: Tensor, dy: Tensor, dx: Tensor, flip: Tensor) -> Tensor:
        if self.flip:
            pixels = _flip(pixels, flip)
        if self.pad:
            pixels = _shift(pixels, dy, dx, self.pad)
        return pixels

    def _normalised(self, pixels: Tensor, chunks: Iterable[Tensor], dtype: torch.dtype) -> Tensor:
        """Return the normalised batch from its chunks of images, which have the shape of `pixels`."""
        batch, *shape, channels = pixels.shape
        height, width = self.input_shape(*shape)
        work = torch.promote_types(dtype, torch.float32)
        mean, std = (torch.tensor(values, dtype=work, device=pixels.device) for values in (self.mean, self.std))
        scale, shift = (1 / (255 * std)).repeat(width), (-mean / std).repeat(width)
        # Whole rows at a time and in place: broadcasting over three channels alone takes twenty times as long.
        rows = torch.empty(batch, height, width * channels, dtype=work, device=pixels.device)
        for out, chunk in zip(rows.split(self._chunk_size(pixels)), chunks, strict=True):
            out.copy_(self._resized(chunk).reshape(out.shape)).mul_(scale).add_(shift)
        return rows.to(dtype).view(batch, height, width, channels).permute(0, 3, 1, 2)

    def _resized(self, pixels: Tensor) -> Tensor:
        size = self.input_shape(*pixels.shape[1:3])
        if size == pixels.shape[1:3]:
            return pixels
        return resized(pixels.permute(0, 3, 1, 2), size, self.interpolation).permute(0, 2, 3, 1)

    def _chunk_size(self, pixels: Tensor) -> int:
        """Return how many images to process at once: all, but large ones one by one on a CPU, to stay in its cache."""
        height, width = self.input_shape(*pixels.shape[1:3])
        one_by_one = pixels.device.type == "cpu" and height * width * pixels.shape[3] >= LARGE_IMAGE
        return 1 if one_by_one else max(1, len(pixels))


def generic(height: int, width: int, channels: int) -> Transform:
    """Return a transform for images of unknown kind: shifts by up to an eighth, flips for colour images only.

    Grey images often show characters. Mean and standard deviation are fixed, not measured, so that classes that arrive
    later are normalised in the same way; for colour images they are those of ImageNet.
    """
    pad = min(height, width) // 8
    if channels == 3:
        return Transform((0.485, 0.456, 0.406), (0.229, 0.224, 0.225), pad=pad, flip=True)
    return Transform((0.5,) * channels, (0.25,) * channels, pad=pad)


def _brightened(pixels: Tensor, factors: Tensor) -> Tensor:
    """Multiply the pixels of each image by its factor; cut at 255 and round down, as Pillow does."""
    return (pixels * factors.view(-1, 1, 1, 1)).clamp_(max=255).to(torch.uint8)


def _flip(pixels: Tensor, flip: Tensor) -> Tensor:
    """Flip those images left to right for which `flip` is true."""
    count = len(pixels)
    if count == 1:
        return pixels.flip(2) if flip else pixels
    choice = torch.arange(count, device=pixels.device) + count * flip
    return torch.cat([pixels, pixels.flip(2)]).index_select(0, choice)


def _shift(pixels: Tensor, dy: Tensor, dx: Tensor, pad: int) -> Tensor:
    """Return crops of the images' own size with their corners at (dy, dx) of the padded images."""
    batch, height, width, channels = pixels.shape
    padded = F.pad(pixels, (0, 0, pad, pad, pad, pad))
    _, high, wide, _ = padded.shape
    first = torch.arange(batch, device=pixels.device) * high + dy
    starts = (first[:, None] + torch.arange(height, device=pixels.device)) * wide + dx[:, None]
    # A row of a crop is a run of consecutive bytes, so each is copied in one piece.
    runs = padded.flatten().unfold(0, width * channels, 1)
    return runs.index_select(0, starts.flatten() * channels).view(batch, height, width, channels)
