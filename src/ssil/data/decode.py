"""The one place where encoded images become pixels.

JPEGs are decoded by libjpeg-turbo without detours, everything else (and any JPEG that it rejects) by Pillow.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from io import BytesIO
from struct import Struct
from typing import NamedTuple

import numpy as np
import simplejpeg
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from ssil.data.image_index import Bytes

LONGEST = 16_384  # pixels of a side
LARGEST = 89_478_485  # pixels in all: what Pillow takes for an attack
ORIENTATION = 0x0112  # the Exif tag
SEGMENT = Struct(">BBH")  # of a JPEG: 255, its kind, its length
FRAME = Struct(">BBHBHHB")  # a segment with precision, height, width, number of components
JPEG = b"\xff\xd8"  # its first bytes
FORMATS = ("JPEG", "MPO", "PNG", "WEBP", "GIF", "BMP", "DIB", "TIFF", "PPM", "AVIF", "JPEG2000", "ICO", "TGA", "PCX")
"""What Pillow may read; not, say, PostScript, which is a program that another program would run."""
HEIC = tuple(b"ftyp" + kind for kind in (b"heic", b"heix", b"hevc"))
FRAMES = (0xC0, 0xC1, 0xC2)  # markers of Huffman-coded frames: baseline, extended, progressive
PROGRESSIVE = 0xC2
EXIF = 0xE1

Pixels = NDArray[np.uint8]


class UnreadableError(Exception):
    """What is not an image, or a damaged one, or one that is too large; in a few words on one line."""


class Box(NamedTuple):
    """A part of the upright picture, in pixels of its full size."""

    left: int
    top: int
    width: int
    height: int


class Turn(NamedTuple):
    """How a stored picture becomes upright: transposed, then turned over top to bottom, then left to right."""

    transposed: bool = False
    over: bool = False
    mirrored: bool = False


UPRIGHT = Turn()
TURNS = {  # by the Exif tag's value; 1 is upright
    2: Turn(mirrored=True),
    3: Turn(over=True, mirrored=True),
    4: Turn(over=True),
    5: Turn(transposed=True),
    6: Turn(transposed=True, mirrored=True),
    7: Turn(transposed=True, over=True, mirrored=True),
    8: Turn(transposed=True, over=True),
}


class ImageHeader(NamedTuple):
    """What is known before decoding: the stored size, and for a JPEG of colour or grey (`band` > 0) its structure.

    `frame` is where its frame header begins (0 if its scans can't be cut short), `band` the lines that are coded
    together.
    """

    width: int
    height: int
    turn: Turn
    frame: int = 0
    band: int = 0


def measure(data: Bytes) -> tuple[int, int]:
    """Width and height of the upright picture, from the header alone."""
    head = _head(data)
    return (head.height, head.width) if head.turn.transposed else (head.width, head.height)


def whole(data: Bytes, channels: int = 3) -> Pixels:
    """The upright picture (H, W, channels) at full size. A truncated one is refused."""
    _refuse_other_files(data)
    if head := _jpeg_head(data):
        _refuse_giants(head.width, head.height)
        with suppress(ValueError):
            return _upright(_strict(data, channels), head.turn)
    with _reasons(), _opened(data) as image:
        _refuse_giants(*image.size)
        pixels = _pixels(image, channels)  # before its notes, whose reading may decode it and hide that it is damaged
        return _upright(pixels, _pillow_head(image).turn)


def view(data: Bytes, box: Box, out: Pixels) -> None:
    """Write a part of an image that is known to be `whole`, resized (bilinear, antialiased), into `out` (S, S, C).

    A part of at least twice (four, eight times) that size is decoded at 1/2 (1/4, 1/8) of its own.
    """
    head = _head(data)
    size, _, channels = out.shape
    left, top, width, height = _stored(box, head)
    shrink = min(8, 1 << max(1, min(width, height) // size).bit_length() - 1)
    try:
        picture = _lines(data, head, top + height, shrink, channels)
    except ValueError:
        shrink, picture = 1, _by_pillow(data, channels)
    rows = slice(round(top / shrink), round((top + height) / shrink))
    columns = slice(round(left / shrink), round((left + width) / shrink))
    _resize(_upright(picture[rows, columns], head.turn), out)


def at_full_size(data: Bytes, side: int, size: int) -> bool:
    """Whether every `view` of this size is cut from the `whole` picture, whose shorter side is given."""
    return side < 2 * size or data[:2] != JPEG


def resize(picture: Pixels, box: Box, out: Pixels) -> None:
    """Write a part of a decoded picture into `out`: the same as `view`, where that decodes at full size."""
    _resize(picture[box.top : box.top + box.height, box.left : box.left + box.width], out)


def _head(data: Bytes) -> ImageHeader:
    _refuse_other_files(data)
    head = _jpeg_head(data) or _other_head(data)
    _refuse_giants(head.width, head.height)
    return head


def _refuse_other_files(data: Bytes) -> None:
    if not len(data):
        raise UnreadableError("empty file")
    if bytes(data[4:12]) in HEIC:
        raise UnreadableError("HEIC, which can't be read here; convert it to JPEG")


def _refuse_giants(width: int, height: int) -> None:
    if max(width, height) > LONGEST:
        raise UnreadableError(f"{width:,} x {height:,} pixels: a side above {LONGEST:,}")
    if width * height > LARGEST:
        raise UnreadableError(f"{width:,} x {height:,} pixels: more than {LARGEST:,}")


def _jpeg_head(data: Bytes) -> ImageHeader | None:
    """None for what is not a JPEG, or one that is best left to Pillow."""
    if data[:2] != JPEG:
        return None
    turn, at, end = UPRIGHT, 2, len(data) - 20
    while at < end:
        start, kind, length = SEGMENT.unpack_from(data, at)
        if start != 0xFF:
            return None
        if kind in FRAMES:
            return _frame(data, at, turn)
        if kind == EXIF and data[at + 4 : at + 10] == b"Exif\0\0":
            turn = _turn(partial(_exif, bytes(data[at + 4 : at + 2 + length])))
        at += 2 + length
    return None


def _frame(data: Bytes, at: int, turn: Turn) -> ImageHeader | None:
    """What the frame header at this place says."""
    _, kind, _, precision, height, width, components = FRAME.unpack_from(data, at)
    if precision != 8 or components not in (1, 3) or not height:
        return None
    sampling = data[at + 11 : at + 11 + 3 * components : 3]
    return ImageHeader(
        width, height, turn, 0 if kind == PROGRESSIVE else at, 8 * max(factors & 15 for factors in sampling)
    )


def _other_head(data: Bytes) -> ImageHeader:
    with _reasons(), _opened(data) as image:
        return _pillow_head(image)


def _pillow_head(image: Image.Image) -> ImageHeader:
    upright = image.format == "TIFF"  # Pillow turns these itself
    return ImageHeader(*image.size, UPRIGHT if upright else _turn(image.getexif))


def _opened(data: Bytes) -> Image.Image:
    return Image.open(BytesIO(data), formats=_formats())


@cache
def _formats() -> tuple[str, ...]:
    """Those that this Pillow was built for."""
    Image.init()
    return tuple(name for name in FORMATS if name in Image.OPEN)


def _exif(block: bytes) -> Image.Exif:
    exif = Image.Exif()
    exif.load(block)
    return exif


def _turn(exif: Callable[[], Image.Exif]) -> Turn:
    """How the camera was held; damaged notes on it count for nothing."""
    with suppress(Exception):
        return TURNS[exif()[ORIENTATION]]
    return UPRIGHT


def _upright(picture: Pixels, turn: Turn) -> Pixels:
    if turn == UPRIGHT:
        return picture
    if turn.transposed:
        picture = picture.swapaxes(0, 1)
    return np.ascontiguousarray(picture[:: -1 if turn.over else 1, :: -1 if turn.mirrored else 1])


def _stored(box: Box, head: ImageHeader) -> Box:
    """Where a part of the upright picture is in the stored one."""
    if head.turn == UPRIGHT:
        return box
    left, top, width, height = box
    wide, high = (head.height, head.width) if head.turn.transposed else (head.width, head.height)
    if head.turn.mirrored:
        left = wide - left - width
    if head.turn.over:
        top = high - top - height
    return Box(top, left, height, width) if head.turn.transposed else Box(left, top, width, height)


def _strict(data: Bytes, channels: int) -> Pixels:
    """A JPEG's pixels; a ValueError at anything unusual."""
    try:
        picture: Pixels = simplejpeg.decode_jpeg(data, _colours(channels))
    except ValueError as error:
        if "premature end" in str(error).lower():  # Pillow would make the missing lines grey
            raise UnreadableError(f"truncated: {error}") from error
        if "bad huffman code" in str(error).lower():  # and what follows it is noise
            raise UnreadableError(f"damaged: {error}") from error
        raise
    return picture


def _colours(channels: int) -> str:
    return "RGB" if channels == 3 else "GRAY"


def _lines(data: Bytes, head: ImageHeader, bottom: int, shrink: int, channels: int) -> Pixels:
    """A JPEG's lines down to `bottom` or further, at a fraction of its size, in memory that the next call uses again.

    The decoder stops where the header says that the picture ends. The last band has to hold the line below `bottom`,
    because colours of a lower resolution are interpolated between lines.
    """
    if not head.band:
        raise ValueError("not a JPEG, or none of grey or RGB")
    height = (-(-bottom // shrink) * shrink // head.band + 1) * head.band
    if head.frame and height < head.height:
        data = _cut(data, head.frame, height)
    else:
        height = head.height
    high, wide = -(-height // shrink), -(-head.width // shrink)
    picture: Pixels = simplejpeg.decode_jpeg(
        data,
        _colours(channels),
        min_height=high,
        min_width=wide,
        min_factor=shrink,
        buffer=_memory.budget(high * wide * channels),
        strict=False,
    )
    return picture


def _cut(data: Bytes, frame: int, height: int) -> memoryview:
    copy = bytearray(data)
    copy[frame + 5 : frame + 7] = height.to_bytes(2)
    return memoryview(copy)


class _Memory(threading.local):
    """A thread's own memory for a decoded picture: fresh memory costs a third of the time of decoding into it."""

    def __init__(self) -> None:
        self.bytes = np.empty(0, np.uint8)

    def budget(self, size: int) -> Pixels:
        if len(self.bytes) < size:
            self.bytes = np.empty(size, np.uint8)
        return self.bytes


_memory = _Memory()


def _by_pillow(data: Bytes, channels: int) -> Pixels:
    with _reasons(), _opened(data) as image:
        return _pixels(image, channels)


def _pixels(image: Image.Image, channels: int) -> Pixels:
    picture = np.array(_opaque(image).convert("RGB" if channels == 3 else "L"))
    return picture.reshape(*picture.shape[:2], channels)


def _opaque(image: Image.Image) -> Image.Image:
    """With 8 bits a channel and on white ground."""
    if image.mode.startswith("I;16"):
        return image.point(lambda value: value / 256).convert("L")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image


@contextmanager
def _reasons() -> Iterator[None]:
    """What Pillow raises depends on the format and on the damage."""
    try:
        yield
    except UnidentifiedImageError as error:
        raise UnreadableError("not an image") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise UnreadableError(f"more than {LARGEST:,} pixels") from error
    except MemoryError:  # which says nothing about the image
        raise
    except Exception as error:
        raise UnreadableError(" ".join(str(error).split()) or type(error).__name__) from error


def _resize(part: Pixels, out: Pixels) -> None:
    batch = part.reshape(1, *part.shape).transpose(0, 3, 1, 2)  # not part[None]: torch would not see channels as last
    resized = F.interpolate(torch.from_numpy(batch), out.shape[:2], mode="bilinear", antialias=True)
    out[:] = resized.numpy()[0].transpose(1, 2, 0)
