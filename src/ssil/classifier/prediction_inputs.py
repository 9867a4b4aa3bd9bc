"""Pictures to be named: files, folders, standard input; each looked at before the model sees it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

from ssil.classifier.images import Picture
from ssil.core.errors import UserError
from ssil.data.decode import UnreadableError, at_full_size, whole
from ssil.data.encoded_images import pool, workers
from ssil.data.image_index import Preprocessing, Remark, content, plain, why
from ssil.data.prefetch import ahead

PHOTOS = {".jpg", ".jpeg", ".jpe", ".jfif", ".jp2", ".png", ".webp", ".gif", ".tif", ".tiff", ".avif", ".heic", ".heif"}
SUFFIXES = PHOTOS | {".bmp", ".tga", ".ico", ".pbm", ".pgm", ".ppm", ".pnm"}
PART = 128
"""How many pictures are in memory at a time; as many are read ahead."""
FEW = 16
"""How many a thread takes at a time."""
SMALL = 1 << 20
"""Bytes of a decoded picture that is not decoded again to be looked at."""


def gallery(names: Sequence[str], stdin: BinaryIO, look: Preprocessing) -> Iterator[tuple[list[Picture], list[Remark]]]:
    """Some at a time, in order: the pictures that can be read, and remarks on the others.

    Small ones that will be looked at in their full size stay decoded.
    """
    places = chain.from_iterable([_places(name) for name in names])
    parts = iter(lambda: [*islice(places, PART)], [])
    return ahead(partial(_part, stdin=stdin, look=look), parts, depth=1)


def _part(places: Sequence[str], stdin: BinaryIO, look: Preprocessing) -> tuple[list[Picture], list[Remark]]:
    def few(start: int) -> list[Picture | Remark]:
        return [_looked_at(place, stdin, look) for place in places[start : start + FEW]]

    found = [*chain.from_iterable(pool(workers()).map(few, range(0, len(places), FEW)))]
    good = [one for one in found if isinstance(one, Picture)]
    return good, [one for one in found if isinstance(one, Remark)]


def _places(name: str) -> list[str]:
    path = Path(name)
    if name == "-" or path.is_file():
        return [name]
    if path.is_dir():
        return [str(file) for file in sorted(path.rglob("*")) if file.suffix.lower() in SUFFIXES]
    raise UserError(f"pictures: there is no {name}; give files, folders, or - for standard input")


def _looked_at(place: str, stdin: BinaryIO, look: Preprocessing) -> Picture | Remark:
    try:
        data = stdin.read() if place == "-" else content(Path(place))
        pixels = whole(data, look.channels)
    except OSError as error:
        return Remark(plain(place), why(error))
    except UnreadableError as error:
        return Remark(plain(place), str(error))
    stays = pixels.nbytes <= SMALL and at_full_size(data, min(pixels.shape[:2]), look.size)
    return replace(Picture.of(plain(place), data), pixels=pixels if stays else None)
