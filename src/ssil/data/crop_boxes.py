"""The part of an image that a view shows: a random crop in training, the centre in a prediction."""

from collections.abc import Sequence
from math import exp, log, sqrt

from ssil.core.network_input import CENTRE
from ssil.data.decode import Box

CROP_TRIES = 10
CROP_NUMBERS = 2 * CROP_TRIES + 2
"""Random numbers per crop: an area and an aspect ratio for each try, then the position."""
MIN_CROP_AREA = 0.08
MAX_LOG_RATIO = log(4 / 3)


def random_box(width: int, height: int, numbers: Sequence[float]) -> Box:
    """Return the box of a random resized crop, a function of CROP_NUMBERS numbers in [0, 1).

    Its area is 8 % to 100 % of the image, its aspect ratio 3/4 to 4/3. If none of ten tries fits into the image (a
    panorama), it is the largest centred box with such a ratio.

    >>> random_box(400, 300, [0.5, 0.5] * CROP_TRIES + [0.0, 0.99])
    Box(left=0, top=45, width=255, height=255)
    >>> random_box(1000, 10, [0.5, 0.5] * CROP_TRIES + [0.0, 0.99])
    Box(left=494, top=0, width=13, height=10)
    """
    for area, shape in zip(numbers[0:-2:2], numbers[1:-2:2], strict=True):
        pixels = width * height * (MIN_CROP_AREA + (1 - MIN_CROP_AREA) * area)
        ratio = exp(MAX_LOG_RATIO * (2 * shape - 1))
        wide, high = round(sqrt(pixels * ratio)), round(sqrt(pixels / ratio))
        if 0 < wide <= width and 0 < high <= height:
            left, top = int(numbers[-2] * (width - wide + 1)), int(numbers[-1] * (height - high + 1))
            return Box(left, top, wide, high)
    return _centred(width, height, min(width, round(height * 4 / 3)), min(height, round(width * 4 / 3)))


def centre_box(width: int, height: int, fraction: float | None = CENTRE) -> Box:
    """Return the centred square whose side is this fraction of the image's short side; for None, the whole image.

    >>> centre_box(500, 375)
    Box(left=86, top=24, width=328, height=328)
    """
    if fraction is None:
        return Box(0, 0, width, height)
    side = max(1, round(fraction * min(width, height)))
    return _centred(width, height, side, side)


def _centred(width: int, height: int, wide: int, high: int) -> Box:
    return Box((width - wide + 1) // 2, (height - high + 1) // 2, wide, high)
