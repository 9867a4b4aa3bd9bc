"""The images that `ssil predict` is given: files, folders, standard input; validated and decoded ahead of time."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

from ssil.classifier.images import ImageFile
from ssil.core.errors import UserError
from ssil.data.decode import UnreadableError, at_full_size, decode_image
from ssil.data.image_index import Preprocessing, Remark, as_utf8, error_reason, read_image_file
from ssil.data.prefetch import decoding_pool, default_threads, prefetch

PHOTOS = {".jpg", ".jpeg", ".jpe", ".jfif", ".jp2", ".png", ".webp", ".gif", ".tif", ".tiff", ".avif", ".heic", ".heif"}
SUFFIXES = PHOTOS | {".bmp", ".tga", ".ico", ".pbm", ".pgm", ".ppm", ".pnm"}
"""Of the files that are read from a folder."""
BATCH_SIZE = 128
"""Images that are in memory at a time; as many are prefetched."""
THREAD_SHARE = 16
"""Images that a thread reads at a time."""
MAX_HELD_BYTES = 1 << 20
"""A decoded image up to this size is held, so that it is not decoded again."""


def read_inputs(
    names: Sequence[str], stdin: BinaryIO, preprocessing: Preprocessing
) -> Iterator[tuple[list[ImageFile], list[Remark]]]:
    """Yield images in batches and in order: those that can be read, and remarks on the others.

    Args:
        names: Files, folders, or "-" for an image on `stdin`.
        stdin: Standard input, as bytes.
        preprocessing: Of the classifier; small images that it uses at full size stay decoded.

    Raises:
        UserError: There is no file or folder of a name.
    """
    paths = chain.from_iterable([_paths(name) for name in names])
    batches = iter(lambda: [*islice(paths, BATCH_SIZE)], [])
    return prefetch(partial(_read_batch, stdin=stdin, preprocessing=preprocessing), batches, depth=1)


def _read_batch(
    paths: Sequence[str], stdin: BinaryIO, preprocessing: Preprocessing
) -> tuple[list[ImageFile], list[Remark]]:
    def read_share(start: int) -> list[ImageFile | Remark]:
        return [_read(path, stdin, preprocessing) for path in paths[start : start + THREAD_SHARE]]

    found = [*chain.from_iterable(decoding_pool(default_threads()).map(read_share, range(0, len(paths), THREAD_SHARE)))]
    readable = [one for one in found if isinstance(one, ImageFile)]
    return readable, [one for one in found if isinstance(one, Remark)]


def _paths(name: str) -> list[str]:
    path = Path(name)
    if name == "-" or path.is_file():
        return [name]
    if path.is_dir():
        return [str(file) for file in sorted(path.rglob("*")) if file.suffix.lower() in SUFFIXES]
    raise UserError(f"images: there is no {name}; give files, folders, or - for standard input")


def _read(path: str, stdin: BinaryIO, preprocessing: Preprocessing) -> ImageFile | Remark:
    try:
        data = stdin.read() if path == "-" else read_image_file(Path(path))
        pixels = decode_image(data, preprocessing.channels)
    except OSError as error:
        return Remark(as_utf8(path), error_reason(error))
    except UnreadableError as error:
        return Remark(as_utf8(path), str(error))
    held = pixels.nbytes <= MAX_HELD_BYTES and at_full_size(data, min(pixels.shape[:2]), preprocessing.size)
    return replace(ImageFile.from_bytes(as_utf8(path), data), pixels=pixels if held else None)
