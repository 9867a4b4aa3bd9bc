"""A picture made smaller, and encoded again."""

from io import BytesIO

import numpy as np
import simplejpeg
from numpy.typing import NDArray
from PIL import Image

from ssil.data.decode import measure, whole
from ssil.data.image_index import Bytes

LOSSLESS = 100
"""The quality that asks for PNG."""


def shrink(data: Bytes, short_side: int, channels: int = 3, quality: int = 90) -> Bytes:
    """The picture, upright, with a short side of so many pixels; one that is no larger stays as it is, to the byte.

    Encoded as JPEG with halved chroma; grey pictures, and those of quality 100, as PNG.
    """
    width, height = measure(data)
    if min(width, height) <= short_side:
        return data
    scale = short_side / min(width, height)
    size = max(short_side, round(width * scale)), max(short_side, round(height * scale))
    pixels = whole(data, channels)
    picture = Image.fromarray(pixels[..., 0] if channels == 1 else pixels).resize(size, Image.Resampling.BILINEAR)
    if channels == 1 or quality == LOSSLESS:
        return _png(picture)
    return _jpeg(np.asarray(picture), quality)


def _jpeg(picture: NDArray[np.uint8], quality: int) -> bytes:
    encoded: bytes = simplejpeg.encode_jpeg(picture, quality, colorsubsampling="420")
    return encoded


def _png(picture: Image.Image) -> bytes:
    encoded = BytesIO()
    picture.save(encoded, "PNG")
    return encoded.getvalue()
