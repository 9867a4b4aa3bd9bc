"""The folder of data sets, and a cache of arrays that are slow to compute."""

import os
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssil.core.cache_folder import cache_dir
from ssil.core.files import replacing

Arrays = dict[str, NDArray[Any]]
BROKEN = (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error)  # what a damaged .npz file may raise


def data_root(root: Path | None) -> Path:
    """Return the folder of data sets: `root`, or else $SSIL_DATA, or else the cache."""
    return Path(root or os.environ.get("SSIL_DATA") or cache_dir())


def cached(name: str, build: Callable[[], Arrays]) -> Arrays:
    """Return the arrays cached under this name; compute and cache them if they are absent or damaged."""
    path = cache_dir() / f"{name}.npz"
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            return dict(stored)
    except BROKEN:
        arrays = build()
    with suppress(OSError), replacing(path, unique=True) as new:  # a cache that can't be written only costs time
        np.savez(new, **arrays)  # type: ignore[arg-type]
    return arrays
