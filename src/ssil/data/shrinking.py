"""Smaller copies of encoded images."""

from io import BytesIO

import numpy as np
import simplejpeg
from PIL import Image

from ssil.data.decode import decode_image, measure
from ssil.data.image_index import Bytes

LOSSLESS = 100
"""The quality that stands for PNG."""


def shrink(data: Bytes, short_side: int, channels: int = 3, quality: int = 90) -> Bytes:
    """Return the image, upright, with a short side of `short_side` pixels; a smaller image is returned unchanged.

    It is encoded as JPEG with chroma of half the resolution; grey images, and those of quality 100, as PNG.
    """
    width, height = measure(data)
    if min(width, height) <= short_side:
        return data
    scale = short_side / min(width, height)
    size = max(short_side, round(width * scale)), max(short_side, round(height * scale))
    pixels = decode_image(data, channels)
    image = Image.fromarray(pixels[..., 0] if channels == 1 else pixels).resize(size, Image.Resampling.BILINEAR)
    if channels == 1 or quality == LOSSLESS:
        encoded = BytesIO()
        image.save(encoded, "PNG")
        return encoded.getvalue()
    return bytes(simplejpeg.encode_jpeg(np.asarray(image), quality, colorsubsampling="420"))
