"""Seeded distortions of character bitmaps, a batch at a time: affine, stroke weight, clutter, blur, contrast, noise."""

from collections.abc import Iterator
from math import pi

import torch
import torch.nn.functional as F
from torch import Tensor

DRAWS = 26
# Each range is (from, to) of a uniform draw; angles in degrees, lengths in half image sides.
ANGLE = (-15.0, 15.0)
SCALE = (0.6, 0.85)
STRETCH = (0.85, 1.18)
SHEAR = (-0.25, 0.25)
SHIFT = (-0.18, 0.18)
WEIGHT = (-0.8, 0.8)
FRAGMENTS = 2
DISTANCE = (0.9, 1.3)
BLUR = (0.0, 1.0)
PAPER = (0.0, 0.35)
INK = (0.55, 1.0)
NOISE = (0.02, 0.2)


def distort(glyphs: Tensor, others: Tensor, draws: Tensor, noise: Tensor) -> Tensor:
    """Distorted pictures, uint8 (B, S, S), of glyphs (B, M, M) with fragments of others (B, FRAGMENTS, M, M).

    `draws` (B, DRAWS) and `noise` (B, S, S) are uniform in [0, 1): a picture depends on nothing but its own row.
    """
    size, unit = noise.shape[-1], iter(draws.unbind(1))
    ink = _warp(glyphs, _place(unit, _between(unit, SHIFT), _between(unit, SHIFT)), size)
    ink = _reweigh(ink, _between(unit, WEIGHT))
    for other in others.unbind(1):
        ink = torch.maximum(ink, _warp(other, _beside(unit), size))
    ink = torch.maximum(ink, _stroke(unit, size))
    ink = _blur(F.avg_pool2d(ink[:, None], 2)[:, 0], _between(unit, BLUR))
    paper, contrast = _column(_between(unit, PAPER)), _column(_between(unit, INK))
    grey = paper + ink * contrast * (1 - paper) + _column(_between(unit, NOISE)) * (noise - 0.5)
    return grey.clamp(0, 1).mul(255).round().to(torch.uint8)


def _between(unit: Iterator[Tensor], bounds: tuple[float, float]) -> Tensor:
    low, high = bounds
    return low + (high - low) * next(unit)


def _column(values: Tensor) -> Tensor:
    return values[:, None, None]


def _beside(unit: Iterator[Tensor]) -> Tensor:
    """The map that puts a fragment at the edge."""
    direction, distance = _between(unit, (-pi, pi)), _between(unit, DISTANCE)
    return _place(unit, distance * direction.cos(), distance * direction.sin())


def _place(unit: Iterator[Tensor], x: Tensor, y: Tensor) -> Tensor:
    """Maps from picture to glyph (B, 2, 3) that turn, shear, stretch and scale it and put its centre at (x, y)."""
    angle, scale = _between(unit, ANGLE) * pi / 180, _between(unit, SCALE)
    stretch, shear = _between(unit, STRETCH), _between(unit, SHEAR)
    cos, sin = angle.cos() / scale, angle.sin() / scale
    a, b = cos * stretch, sin * stretch
    c, d = -sin / stretch + shear * a, cos / stretch + shear * b
    return torch.stack([a, b, -(a * x + b * y), c, d, -(c * x + d * y)], 1).view(-1, 2, 3)


def _warp(glyphs: Tensor, maps: Tensor, size: int) -> Tensor:
    """Glyphs seen through these maps, at twice the size."""
    across, down, offset = maps[..., None, None].unbind(2)
    position = _positions(size)
    grid = across * position + (down * position[:, None] + offset)
    return F.grid_sample(glyphs[:, None], grid.permute(0, 2, 3, 1), align_corners=False)[:, 0]


def _positions(size: int) -> Tensor:
    """The pixels' centres along one side, from -1 to 1, at twice the size."""
    return (torch.arange(2 * size) + 0.5) / size - 1


def _reweigh(ink: Tensor, weight: Tensor) -> Tensor:
    """Bolder where the weight is above zero, lighter where below."""
    bold, light = _widest(ink), -_widest(-ink)
    return torch.lerp(ink, torch.where(_column(weight) > 0, bold, light), _column(weight.abs()))


def _widest(ink: Tensor) -> Tensor:
    """The largest of each pixel and its eight neighbours; in slices, twenty times as fast as max-pooling."""
    ink = F.pad(ink, (1, 1, 1, 1))
    ink = torch.maximum(torch.maximum(ink[:, :-2], ink[:, 1:-1]), ink[:, 2:])
    return torch.maximum(torch.maximum(ink[:, :, :-2], ink[:, :, 1:-1]), ink[:, :, 2:])


def _stroke(unit: Iterator[Tensor], size: int) -> Tensor:
    """A straight line across the picture."""
    angle, offset, width = _between(unit, (0, pi)), _between(unit, (-0.9, 0.9)), _between(unit, (-1, 1.5))
    position = _positions(size)
    distance = _column(angle.cos()) * position + _column(angle.sin()) * position[:, None] - _column(offset)
    return (_column(width) + 0.5 - distance.abs() * size).clamp(0, 1)


def _blur(ink: Tensor, amount: Tensor) -> Tensor:
    """A mixture of the picture and its binomial 3x3 blur."""
    soft = F.pad(ink, (1, 1, 1, 1))
    soft = (soft[:, :-2] + 2 * soft[:, 1:-1] + soft[:, 2:]) / 4
    soft = (soft[:, :, :-2] + 2 * soft[:, :, 1:-1] + soft[:, :, 2:]) / 4
    return torch.lerp(ink, soft, _column(amount))
