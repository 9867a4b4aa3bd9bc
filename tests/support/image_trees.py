"""Small trees of image files, laid out as real sets are."""

import io
from functools import cache
from pathlib import Path

from PIL import Image

from ssil.data.image_index import ImageIndex


@cache
def encoded(suffix: str, grey: int) -> bytes:
    """An image of one shade of grey, 8 pixels square."""
    file = io.BytesIO()
    Image.new("RGB", (8, 8), (grey, grey, grey)).save(file, Image.registered_extensions()[suffix.lower()])
    return file.getvalue()


def write_image(path: Path, grey: int = 0) -> None:
    """An image in a file, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encoded(path.suffix, grey))


def write_images(path: Path, *names: str) -> None:
    """Files with their number as their shade of grey."""
    for number, name in enumerate(names):
        write_image(path / name, number)


def grey(image_index: ImageIndex, index: int) -> int:
    """The shade of an image in an index."""
    with Image.open(io.BytesIO(image_index.source.read(index))) as image:
        return int(image.convert("L").getpixel((0, 0)))  # type: ignore[arg-type]


def listed(image_index: ImageIndex) -> dict[str, list[str]]:
    """The files of each class."""
    found: dict[str, list[str]] = {name: [] for name in image_index.classes}
    for name, label in zip(image_index.source.names, image_index.labels.tolist(), strict=True):
        found[image_index.classes[label]].append(name)
    return found


def held_out(image_index: ImageIndex) -> set[str]:
    """The files that are for testing."""
    assert image_index.is_test is not None
    return {name for name, which in zip(image_index.source.names, image_index.is_test, strict=True) if which}
