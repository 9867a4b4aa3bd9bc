"""The images that an estimator is given: paths, Pillow's images or arrays, each brought to its encoded form."""

from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from ssil.classifier.image_file import ImageFile
from ssil.core.errors import UserError
from ssil.data.decode import UnreadableError, measure
from ssil.data.image_index import read_image_file

ImagesLike = str | Path | Image.Image | Sequence[str | Path | Image.Image] | NDArray[np.uint8]
"""Paths, Pillow's images (one, or several), or an array of bytes (N, H, W) or (N, H, W, C)."""


def encoded(images: ImagesLike) -> Iterator[ImageFile]:
    """Yield each image in its encoded form; raise UserError if one is no image."""
    several = [images] if isinstance(images, str | Path | Image.Image) else images
    for index, image in enumerate(several):
        yield _encoded(image, index)


def _encoded(image: str | Path | Image.Image | NDArray[np.uint8], index: int) -> ImageFile:
    if isinstance(image, str | Path):
        try:
            data = read_image_file(Path(image))
            measure(data)
        except (OSError, UnreadableError) as error:
            raise UserError(f"X: {image} can't be read ({error})") from None
        return ImageFile.from_bytes(str(image), data)
    upright = ImageOps.exif_transpose(image) if isinstance(image, Image.Image) else _from_array(image, index)
    file = BytesIO()
    (upright.convert("RGB") if upright.mode in {"CMYK", "YCbCr", "LAB", "HSV"} else upright).save(file, "PNG")
    return ImageFile.from_bytes(f"picture {index}", file.getvalue())  # the name that model directories have always had


def _from_array(image: NDArray[np.uint8], index: int) -> Image.Image:
    pixels = np.asarray(image)
    if pixels.dtype != np.uint8 or pixels.ndim not in {2, 3}:
        raise UserError(f"X: image {index} is {pixels.dtype} {pixels.shape}; give uint8 (H, W) or (H, W, channels)")
    return Image.fromarray(pixels[..., 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels)
