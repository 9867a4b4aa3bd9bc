"""What an image's pixels tell without a network: its sharpness, its brightness, and a small copy to recognise it by."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ssil.classifier.image_file import ImageFile
from ssil.data.crop_boxes import centre_box
from ssil.data.decode import Pixels, UnreadableError, measure, view
from ssil.data.prefetch import decoding_pool, default_threads

SIDE, COPY_SIDE = 160, 16
"""The pixels per side at which images are measured, and of the small copies."""
BRIGHT_PART = 0.9
"""An image is as bright as the pixel that is brighter than this part of it: images of black things are not dark."""

Values = NDArray[np.float64]


class ImageMeasures(NamedTuple):
    """One row per image; an image that can't be read any more has NaN and a copy of zeros."""

    sharpness: Values
    """(N,) the logarithm of the mean squared Laplacian over the mean squared gradient: contrast does not change it."""
    brightness: Values
    """(N,) the luminance, 0 to 255, below which `BRIGHT_PART` of the pixels are."""
    copies: Values
    """(N, 768) the pixels of a small copy, with mean 0 and length 1."""


def measure_images(images: Sequence[ImageFile]) -> ImageMeasures:
    """Return the measures of images; they are decoded by several threads."""
    rows = [*decoding_pool(default_threads()).map(_measured, images)]
    columns = [np.array(column) for column in zip(*rows, strict=True)] if rows else [np.empty(0), np.empty(0)]
    return ImageMeasures(columns[0], columns[1], columns[2] if rows else np.empty((0, 3 * COPY_SIDE**2)))


def _measured(image: ImageFile) -> tuple[float, float, Values]:
    try:
        data = image.read()
        pixels = np.empty((SIDE, SIDE, 3), np.uint8)
        view(data, centre_box(*measure(data), fraction=1.0), pixels)
    except (OSError, UnreadableError):
        return np.nan, np.nan, np.zeros(3 * COPY_SIDE**2)
    grey = pixels @ np.array([0.299, 0.587, 0.114])
    return sharpness(grey), float(np.quantile(grey, BRIGHT_PART)), small_copy(pixels)


def sharpness(grey: Values) -> float:
    """Return the logarithm of the mean squared Laplacian over the mean squared gradient of luminances (H, W).

    >>> step = np.repeat([[0.0, 0, 0, 9, 9, 9]], 6, axis=0)
    >>> slope = np.repeat([[0.0, 2, 4, 5, 7, 9]], 6, axis=0)
    >>> sharpness(step) > sharpness(slope)
    True
    """
    centre = grey[1:-1, 1:-1]
    laplacian = grey[:-2, 1:-1] + grey[2:, 1:-1] + grey[1:-1, :-2] + grey[1:-1, 2:] - 4 * centre
    gradient = np.diff(grey, axis=0)[:, :-1] ** 2 + np.diff(grey, axis=1)[:-1] ** 2
    return float(np.log(np.mean(laplacian**2) + 1e-3) - np.log(np.mean(gradient) + 1e-3))


def small_copy(pixels: Pixels) -> Values:
    """Return the means of squares of an image (S, S, 3), as one vector with mean 0 and length 1; zeros if all equal."""
    part = len(pixels) // COPY_SIDE
    means = pixels.reshape(COPY_SIDE, part, COPY_SIDE, part, 3).astype(np.float64).mean((1, 3)).ravel()
    means -= means.mean()
    length = float(np.linalg.norm(means))
    return means / length if length > 1e-6 else np.zeros_like(means)
