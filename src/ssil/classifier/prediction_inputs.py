"""The images that `ssil predict` is given: files, folders, standard input; validated and decoded ahead of time."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from ssil.core.errors import UserError
from ssil.data.crop_boxes import centre_box
from ssil.data.decode import Pixels, UnreadableError, at_full_size, decode_image, measure, resize, view
from ssil.data.image_index import Preprocessing, Remark, as_utf8, error_reason, read_image_file
from ssil.data.prefetch import decoding_pool, default_threads, prefetch

PHOTOS = {".jpg", ".jpeg", ".jpe", ".jfif", ".jp2", ".png", ".webp", ".gif", ".tif", ".tiff", ".avif", ".heic", ".heif"}
SUFFIXES = PHOTOS | {".bmp", ".tga", ".ico", ".pbm", ".pgm", ".ppm", ".pnm"}
"""Of the files that are read from a folder."""
BATCH_SIZE = 128
"""Images that are in memory at a time; as many are prefetched."""
THREAD_SHARE = 16
"""Images that a thread reads at a time."""


class NamedView(NamedTuple):
    """An image's name, and what the network sees of it, (S, S, C)."""

    name: str
    pixels: Pixels


class InputBatch(NamedTuple):
    """Images in order: the names and the views (N, S, S, C) of those that can be read, and remarks on the others."""

    names: tuple[str, ...]
    views: Pixels
    remarks: tuple[Remark, ...]


def read_inputs(names: Sequence[str], stdin: BinaryIO, preprocessing: Preprocessing) -> Iterator[InputBatch]:
    """Yield images in batches and in order.

    Args:
        names: Files, folders, or "-" for an image on `stdin`.
        stdin: Standard input, as bytes.
        preprocessing: Of the classifier.

    Raises:
        UserError: There is no file or folder of a name.
    """
    paths = chain.from_iterable([_paths(name) for name in names])
    batches = iter(lambda: [*islice(paths, BATCH_SIZE)], [])
    return prefetch(partial(_read_batch, stdin=stdin, preprocessing=preprocessing), batches, depth=1)


def _read_batch(paths: Sequence[str], stdin: BinaryIO, preprocessing: Preprocessing) -> InputBatch:
    def read_share(start: int) -> list[NamedView | Remark]:
        return [_read(path, stdin, preprocessing) for path in paths[start : start + THREAD_SHARE]]

    found = [*chain.from_iterable(decoding_pool(default_threads()).map(read_share, range(0, len(paths), THREAD_SHARE)))]
    readable = [one for one in found if isinstance(one, NamedView)]
    size, channels = preprocessing.size, preprocessing.channels
    views = np.array([one.pixels for one in readable], np.uint8).reshape(-1, size, size, channels)
    return InputBatch(
        tuple(one.name for one in readable), views, tuple(one for one in found if isinstance(one, Remark))
    )


def _paths(name: str) -> list[str]:
    path = Path(name)
    if name == "-" or path.is_file():
        return [name]
    if path.is_dir():
        return [str(file) for file in sorted(path.rglob("*")) if file.suffix.lower() in SUFFIXES]
    raise UserError(f"images: there is no {name}; give files, folders, or - for standard input")


def _read(path: str, stdin: BinaryIO, preprocessing: Preprocessing) -> NamedView | Remark:
    try:
        data = stdin.read() if path == "-" else read_image_file(Path(path))
        return NamedView(as_utf8(path), read_view(data, preprocessing))
    except OSError as error:
        return Remark(as_utf8(path), error_reason(error))
    except UnreadableError as error:
        return Remark(as_utf8(path), str(error))


def read_view(data: bytes, preprocessing: Preprocessing) -> Pixels:
    """Return the test view; raise UnreadableError if the image is damaged, which `view` alone would not notice."""
    size, channels = preprocessing.size, preprocessing.channels
    out = np.empty((size, size, channels), np.uint8)
    pixels = decode_image(data, channels)
    box = centre_box(*measure(data), preprocessing.centre)
    if at_full_size(data, min(pixels.shape[:2]), size):
        resize(pixels, box, out, preprocessing.interpolation)
    else:
        view(data, box, out, preprocessing.interpolation)
    return out
