"""Thumbnails inside a page: small JPEGs, each once, as many as fit."""

from base64 import b64encode
from dataclasses import dataclass, field

import numpy as np
import simplejpeg

from ssil.classifier.image_file import ImageFile
from ssil.data.crop_boxes import centre_box
from ssil.data.decode import UnreadableError, measure, view

SIDE, QUALITY = 200, 62
MOST_BYTES = 740_000
"""Of all thumbnails of a page."""


@dataclass
class Thumbnails:
    """Thumbnails by number; a style sheet shows each wherever its class stands."""

    sources: dict[str, str] = field(default_factory=dict)
    """The JPEG, in base 64, of each image by its checksum."""
    size: int = 0

    def add(self, image: ImageFile | None) -> str:
        """Return the style class of an image's thumbnail; an empty text if it can't be read, or the page is full."""
        if image is None or (image.digest not in self.sources and self.size > MOST_BYTES):
            return ""
        if image.digest not in self.sources:
            self.sources[image.digest] = _encoded(image)
            self.size += len(self.sources[image.digest])
        number = [*self.sources].index(image.digest)
        return f"t{number}" if self.sources[image.digest] else ""

    def rules(self) -> list[tuple[str, str]]:
        """Return the style classes with their images."""
        return [(f"t{number}", source) for number, source in enumerate(self.sources.values()) if source]


def _encoded(image: ImageFile) -> str:
    """Return a small copy of a whole image as a JPEG in base 64; an empty text if it can't be read."""
    try:
        data = image.read()
        width, height = measure(data)
        across, down = (max(1, round(SIDE * side / max(width, height))) for side in (width, height))
        pixels = np.empty((down, across, 3), np.uint8)
        view(data, centre_box(width, height, fraction=None), pixels)
    except (OSError, UnreadableError):
        return ""
    return b64encode(simplejpeg.encode_jpeg(pixels, QUALITY, colorsubsampling="420")).decode()
