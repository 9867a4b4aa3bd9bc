"""Contact sheets: a few images of each class, with its name below."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from ssil.data.crop_boxes import centre_box
from ssil.data.decode import UnreadableError, measure, view
from ssil.data.image_index import ImageIndex

CLASSES, IMAGES, COLUMNS = 40, 4, 5
SIDE, GAP, MARGIN = 96, 4, 24
STRIP = IMAGES * (SIDE + GAP) - GAP
ROW = SIDE + 40
HEAD = 64
DARK, GREY, PALE = "#202020", "#767676", "#ececec"

Item = TypeVar("Item")


def contact_sheet(index: ImageIndex) -> Image.Image:
    """Return a sheet with images of up to 40 classes, spread evenly over all of them."""
    labels = spread(range(len(index.classes)), CLASSES)
    columns = min(COLUMNS, len(labels))
    size = MARGIN + columns * (STRIP + MARGIN), HEAD + -(-len(labels) // columns) * ROW
    sheet = Image.new("RGB", size, "white")
    title = _title(index, len(labels))
    ImageDraw.Draw(sheet).text((MARGIN, 20), fitting(title, 18, size[0] - 2 * MARGIN), DARK, _font(18))
    for place, label in enumerate(labels):
        row, column = divmod(place, columns)
        sheet.paste(_strip(index, label), (MARGIN + column * (STRIP + MARGIN), HEAD + row * ROW))
    return sheet


def spread(items: Sequence[Item], most: int) -> list[Item]:
    """Return at most `most` of the items, evenly spaced.

    >>> spread(range(100), 4), spread("ab", 4)
    ([0, 25, 50, 75], ['a', 'b'])
    """
    count = min(len(items), most)
    return [items[number * len(items) // count] for number in range(count)]


def fitting(text: str, size: int, width: int) -> str:
    """Return the text on one line, shortened in the middle to at most `width` pixels."""
    text = " ".join(text.split())
    if _font(size).getlength(text) <= width:
        return text
    for kept in range(len(text), 0, -1):
        head, tail = text[: (kept + 1) // 2], text[len(text) - kept // 2 :]
        if _font(size).getlength(short := f"{head}…{tail}") <= width:
            return short
    return "…"


def _title(index: ImageIndex, shown: int) -> str:
    images, classes = f"{len(index):,} images", f"{len(index.classes):,} classes"
    return f"{index.name}: {images}, {classes}" + (f", {shown} of them here" * (shown < len(index.classes)))


def _strip(index: ImageIndex, label: int) -> Image.Image:
    """Return the images of a class in a row, with its name and the number of its images below."""
    strip = Image.new("RGB", (STRIP, ROW), "white")
    members = np.flatnonzero(index.labels == label).tolist()
    for place, row in enumerate(spread(members, IMAGES)):
        strip.paste(_thumbnail(index, row), (place * (SIDE + GAP), 0))
    draw, count = ImageDraw.Draw(strip), f"{len(members):,}"
    name = fitting(index.classes[label], 14, STRIP - 12 - round(_font(12).getlength(count)))
    draw.text((0, SIDE + 18), name, DARK, _font(14), anchor="ls")
    draw.text((STRIP, SIDE + 18), count, GREY, _font(12), anchor="rs")
    return strip


def _thumbnail(index: ImageIndex, row: int) -> Image.Image:
    """Return the centre of an image; a crossed square if it can't be read."""
    pixels = np.empty((SIDE, SIDE, 3), dtype=np.uint8)
    try:
        data = index.source.read(row)
        view(data, centre_box(*measure(data), fraction=1.0), pixels)
        return Image.fromarray(pixels)
    except (OSError, UnreadableError):
        crossed = Image.new("RGB", (SIDE, SIDE), PALE)
        ImageDraw.Draw(crossed).line([(0, 0), (SIDE, SIDE)], GREY)
        ImageDraw.Draw(crossed).line([(0, SIDE), (SIDE, 0)], GREY)
        return crossed


@cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf", size)
