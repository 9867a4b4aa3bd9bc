"""Decoding: the only place where encoded images become pixels.

JPEGs are decoded by libjpeg-turbo, everything else, and any JPEG that it rejects, by Pillow.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from io import BytesIO
from struct import Struct
from typing import NamedTuple

import numpy as np
import simplejpeg
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from ssil.core.network_input import Interpolation
from ssil.data.heic import MISSING, is_heic, reads_heic
from ssil.data.image_index import Bytes
from ssil.data.numpy_resizing import resize_pixels

MAX_SIDE = 16_384
MAX_PIXELS = 89_478_485  # above it, Pillow suspects a decompression bomb
FORMATS = ("JPEG", "MPO", "PNG", "WEBP", "GIF", "BMP", "DIB", "TIFF", "PPM", "AVIF", "JPEG2000", "ICO", "TGA", "PCX")
"""What Pillow may read; not, for example, PostScript, which another program would execute."""

ORIENTATION = 0x0112  # the Exif tag
JPEG = b"\xff\xd8"  # a JPEG's first bytes
SEGMENT = Struct(">BBH")  # of a JPEG: 255, its marker, its length
FRAME = Struct(">BBHBHHB")  # a segment with precision, height, width, number of components
FRAMES = (0xC0, 0xC1, 0xC2)  # markers of Huffman-coded frames: baseline, extended, progressive
PROGRESSIVE = 0xC2
EXIF = 0xE1

Pixels = NDArray[np.uint8]


class UnreadableError(Exception):
    """Data that is not an image, is damaged or too large; the message is a few words on one line."""


class MissingDecoderError(UnreadableError):
    """An image that can be read once another package is installed."""


class Box(NamedTuple):
    """A part of the upright image, in pixels of its full size."""

    left: int
    top: int
    width: int
    height: int


class Orientation(NamedTuple):
    """How a stored image becomes upright: transposed, then flipped top to bottom, then flipped left to right."""

    transposed: bool = False
    vertical_flip: bool = False
    horizontal_flip: bool = False


UPRIGHT = Orientation()
ORIENTATIONS = {  # by the Exif tag's value; 1 is upright
    2: Orientation(False, False, True),
    3: Orientation(False, True, True),
    4: Orientation(False, True, False),
    5: Orientation(True, False, False),
    6: Orientation(True, False, True),
    7: Orientation(True, True, True),
    8: Orientation(True, True, False),
}


class ImageHeader(NamedTuple):
    """What is known before decoding: the stored size, the orientation, and for a colour or grey JPEG its structure.

    `frame` is the position of the JPEG's frame header (0 if its scans can't be cut short), `band` the number of lines
    that are coded together (0 if it is not such a JPEG).
    """

    width: int
    height: int
    orientation: Orientation
    frame: int = 0
    band: int = 0

    @property
    def upright_size(self) -> tuple[int, int]:
        """Width and height of the upright image."""
        return (self.height, self.width) if self.orientation.transposed else (self.width, self.height)

    def stored(self, box: Box) -> Box:
        """Return the position in the stored image of a box of the upright image."""
        left, top, width, height = box
        upright_width, upright_height = self.upright_size
        if self.orientation.horizontal_flip:
            left = upright_width - left - width
        if self.orientation.vertical_flip:
            top = upright_height - top - height
        return Box(top, left, height, width) if self.orientation.transposed else Box(left, top, width, height)


def measure(data: Bytes) -> tuple[int, int]:
    """Return width and height of the upright image, from the header alone."""
    return _header(data).upright_size


def decode_image(data: Bytes, channels: int = 3) -> Pixels:
    """Return the upright image (H, W, channels) at full size; raise UnreadableError if it is damaged or truncated."""
    _refuse_other_files(data)
    if header := _jpeg_header(data):
        _refuse_giants(header.width, header.height)
        with suppress(ValueError):
            return _upright(_decode_jpeg(data, channels), header.orientation)
    with _pillow_errors(), _open(data) as image:
        _refuse_giants(*image.size)
        pixels = _pixels(
            image, channels
        )  # before its Exif, whose reading may decode the image and hide that it is damaged
        return _upright(pixels, _pillow_header(image).orientation)


def view(data: Bytes, box: Box, out: Pixels, interpolation: Interpolation = "bilinear") -> None:
    """Write a part of an image, resized (antialiased), into `out` (S, S, C).

    A part of at least twice (four, eight times) that size is decoded at 1/2 (1/4, 1/8) of its own. The image must be
    known to be readable: damage is not detected here.
    """
    header = _header(data)
    size, _, channels = out.shape
    left, top, width, height = header.stored(box)
    scale = min(8, 1 << max(1, min(width, height) // size).bit_length() - 1)
    try:
        image = _decode_lines(data, header, top + height, scale, channels)
    except ValueError:
        scale, image = 1, _decode_by_pillow(data, channels)
    rows = slice(round(top / scale), round((top + height) / scale))
    columns = slice(round(left / scale), round((left + width) / scale))
    _resize(_upright(image[rows, columns], header.orientation), out, interpolation)


def at_full_size(data: Bytes, side: int, size: int) -> bool:
    """Return whether every `view` of this size is cropped from the image at full size, whose shorter side is given."""
    return side < 2 * size or data[:2] != JPEG


def resize(image: Pixels, box: Box, out: Pixels, interpolation: Interpolation = "bilinear") -> None:
    """Write a part of a decoded image into `out`: the same as `view`, where that decodes at full size."""
    _resize(image[box.top : box.top + box.height, box.left : box.left + box.width], out, interpolation)


def _header(data: Bytes) -> ImageHeader:
    _refuse_other_files(data)
    header = _jpeg_header(data)
    if not header:
        with _pillow_errors(), _open(data) as image:
            header = _pillow_header(image)
    _refuse_giants(header.width, header.height)
    return header


def _refuse_other_files(data: Bytes) -> None:
    if not len(data):
        raise UnreadableError("empty file")
    if is_heic(data) and not reads_heic():
        raise MissingDecoderError(MISSING)


def _refuse_giants(width: int, height: int) -> None:
    if max(width, height) > MAX_SIDE:
        raise UnreadableError(f"{width:,} x {height:,} pixels: a side above {MAX_SIDE:,}")
    if width * height > MAX_PIXELS:
        raise UnreadableError(f"{width:,} x {height:,} pixels: more than {MAX_PIXELS:,}")


def _jpeg_header(data: Bytes) -> ImageHeader | None:
    """Return None for what is not a JPEG, or is one that is left to Pillow."""
    if data[:2] != JPEG:
        return None
    orientation, at, end = UPRIGHT, 2, len(data) - 20
    while at < end:
        start, marker, length = SEGMENT.unpack_from(data, at)
        if start != 0xFF:
            return None
        if marker in FRAMES:
            return _jpeg_frame(data, at, orientation)
        if marker == EXIF and data[at + 4 : at + 10] == b"Exif\0\0":
            orientation = _orientation(partial(_exif, bytes(data[at + 4 : at + 2 + length])))
        at += 2 + length
    return None


def _jpeg_frame(data: Bytes, at: int, orientation: Orientation) -> ImageHeader | None:
    """Return the content of the frame header at this position; None if the frame is left to Pillow."""
    _, marker, _, precision, height, width, components = FRAME.unpack_from(data, at)
    if precision != 8 or components not in (1, 3) or not height:
        return None
    sampling = data[at + 11 : at + 11 + 3 * components : 3]
    band = 8 * max(factors & 15 for factors in sampling)
    return ImageHeader(width, height, orientation, 0 if marker == PROGRESSIVE else at, band)


def _pillow_header(image: Image.Image) -> ImageHeader:
    upright = image.format == "TIFF"  # Pillow rotates these itself
    return ImageHeader(*image.size, UPRIGHT if upright else _orientation(image.getexif))


def _open(data: Bytes) -> Image.Image:
    return Image.open(BytesIO(data), formats=_formats())


@cache
def _formats() -> tuple[str, ...]:
    """Return those of FORMATS that this Pillow was built for, and HEIF if pillow-heif is installed."""
    Image.init()
    return tuple(name for name in (*FORMATS, *(["HEIF"] * reads_heic())) if name in Image.OPEN)


def _exif(block: bytes) -> Image.Exif:
    exif = Image.Exif()
    exif.load(block)
    return exif


def _orientation(exif: Callable[[], Image.Exif]) -> Orientation:
    """Return the camera's orientation; an image with damaged Exif data counts as upright."""
    with suppress(Exception):
        return ORIENTATIONS[exif()[ORIENTATION]]
    return UPRIGHT


def _upright(image: Pixels, orientation: Orientation) -> Pixels:
    if orientation == UPRIGHT:
        return image
    if orientation.transposed:
        image = image.swapaxes(0, 1)
    rows, columns = (slice(None, None, -1 if flip else 1) for flip in orientation[1:])
    return np.ascontiguousarray(image[rows, columns])


def _decode_jpeg(data: Bytes, channels: int) -> Pixels:
    """Return a JPEG's pixels; raise UnreadableError if it is damaged, ValueError for a flaw that is left to Pillow."""
    try:
        image: Pixels = simplejpeg.decode_jpeg(data, _colour_space(channels))
    except ValueError as error:
        if "premature end" in str(error).lower():  # Pillow would make the missing lines grey
            raise UnreadableError(f"truncated: {error}") from error
        if "bad huffman code" in str(error).lower():  # and what follows it is noise
            raise UnreadableError(f"damaged: {error}") from error
        raise
    return image


def _colour_space(channels: int) -> str:
    return "RGB" if channels == 3 else "GRAY"


def _decode_lines(data: Bytes, header: ImageHeader, bottom: int, scale: int, channels: int) -> Pixels:
    """Return a JPEG's lines down to `bottom` or further, at 1 / scale of its size, in memory that is reused.

    The decoder stops at the height in the frame header, so a copy with a smaller height is decoded: 17 % more random
    crops of 224 pixels per second from photographs of 500 x 375, 11 % from such shrunk to 256, 7 to 16 % from images of
    160 pixels. The last band must hold the line below `bottom`, because colours of a lower resolution are interpolated
    between lines.
    """
    if not header.band:
        raise ValueError("not a grey or RGB JPEG")
    height = (-(-bottom // scale) * scale // header.band + 1) * header.band
    if header.frame and height < header.height:
        data = _with_height(data, header.frame, height)
    else:
        height = header.height
    min_height, min_width = -(-height // scale), -(-header.width // scale)
    image: Pixels = simplejpeg.decode_jpeg(
        data,
        _colour_space(channels),
        min_height=min_height,
        min_width=min_width,
        min_factor=scale,
        buffer=_buffer.at_least(min_height * min_width * channels),
        strict=False,
    )
    return image


def _with_height(data: Bytes, frame: int, height: int) -> memoryview:
    copy = bytearray(data)
    copy[frame + 5 : frame + 7] = height.to_bytes(2)
    return memoryview(copy)


class _Buffer(threading.local):
    """A thread's own memory for a decoded image: fresh memory costs a third of the time of decoding into it."""

    def __init__(self) -> None:
        self.bytes = np.empty(0, np.uint8)

    def at_least(self, size: int) -> Pixels:
        if len(self.bytes) < size:
            self.bytes = np.empty(size, np.uint8)
        return self.bytes


_buffer = _Buffer()


def _decode_by_pillow(data: Bytes, channels: int) -> Pixels:
    with _pillow_errors(), _open(data) as image:
        return _pixels(image, channels)


def _pixels(image: Image.Image, channels: int) -> Pixels:
    pixels = np.array(_opaque(image).convert("RGB" if channels == 3 else "L"))
    return pixels.reshape(*pixels.shape[:2], channels)


def _opaque(image: Image.Image) -> Image.Image:
    """Return the image with 8 bits per channel, on a white background."""
    if image.mode.startswith("I;16"):
        return image.point(lambda value: value / 256).convert("L")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image


@contextmanager
def _pillow_errors() -> Iterator[None]:
    """Turn Pillow's errors, whose types depend on the format and the damage, into UnreadableError."""
    try:
        yield
    except UnidentifiedImageError as error:
        raise UnreadableError("not an image") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise UnreadableError(f"more than {MAX_PIXELS:,} pixels") from error
    except MemoryError:  # no fault of the image
        raise
    except Exception as error:
        raise UnreadableError(" ".join(str(error).split()) or type(error).__name__) from error


def _resize(part: Pixels, out: Pixels, interpolation: Interpolation) -> None:
    """Resize by PyTorch if it is loaded, since it is several times as fast; the pixels are the same, to the bit."""
    (_resize_by_torch if "torch" in sys.modules else resize_pixels)(part, out, interpolation)


def _resize_by_torch(part: Pixels, out: Pixels, interpolation: Interpolation) -> None:
    import torch

    from ssil.data.resizing import resized

    batch = part.reshape(1, *part.shape).transpose(0, 3, 1, 2)  # not part[None]: torch would not see channels as last
    height, width, _ = out.shape
    out[:] = resized(torch.from_numpy(batch), (height, width), interpolation).numpy()[0].transpose(1, 2, 0)
