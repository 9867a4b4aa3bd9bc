"""What the C library does with memory that is freed."""

import ctypes
from contextlib import suppress

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
KEPT = 2**30


def keep_freed_memory() -> None:
    """Let it keep up to a gigabyte for the next batch, rather than return it to the system at once.

    Each page that comes fresh from the system is zeroed and mapped first, which takes longer than to fill it. It
    changes nothing where the C library is not GNU's.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL("libc.so.6")
        library.mallopt(M_MMAP_MAX, 0)
        library.mallopt(M_TRIM_THRESHOLD, KEPT)
