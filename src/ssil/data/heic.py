"""HEIC, the format of photographs that phones make; Pillow reads it if pillow-heif is installed (`ssil[heic]`)."""

from functools import cache
from importlib import import_module

from ssil.data.image_index import Bytes

BRANDS = tuple(b"ftyp" + kind for kind in (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1"))
"""The bytes 4 to 12 of a HEIC file; an AVIF, which Pillow reads itself, may begin with the last one too."""
MISSING = "HEIC, for which a package is missing: pip install 'ssil[heic]', or convert it to JPEG"
"""Why a HEIC file is not read."""


def is_heic(data: Bytes) -> bool:
    """Return whether these are the bytes of a HEIC file."""
    return bytes(data[4:12]) in BRANDS and b"avif" not in bytes(data[12:64])


@cache
def reads_heic() -> bool:
    """Return whether pillow-heif is installed; if it is, register it with Pillow."""
    try:
        import_module("pillow_heif").register_heif_opener()
    except ImportError:
        return False
    return True
