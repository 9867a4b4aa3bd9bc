"""The one place where an image file becomes pixels."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps


class UnreadableError(Exception):
    """A file that is not an image, or a damaged one."""


def decode(path: Path, size: int) -> NDArray[np.uint8]:
    """The picture in a file as RGB (size, size, 3): upright, its short side resized to `size`, its centre cropped.

    Transparent parts are white.
    """
    try:
        with Image.open(path) as image:
            return np.asarray(ImageOps.fit(_upright(image, size), (size, size), Image.Resampling.BILINEAR))
    except Exception as error:  # what Pillow raises depends on the format and on the damage
        raise UnreadableError(" ".join(str(error).split()) or type(error).__name__) from error


def _upright(image: Image.Image, size: int) -> Image.Image:
    """The whole picture in RGB, as its camera held it; a large JPEG is decoded at a fraction of its size."""
    image.draft("RGB", (2 * size, 2 * size))
    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I;16"):
        image = image.point(lambda value: value / 256).convert("L")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image.convert("RGB")
