"""Folders and files on disk, as far as sources need to know them."""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ssil.data.cache import data_root
from ssil.errors import UserError


def natural(name: str) -> tuple[list[str | int], str]:
    """A key that sorts the numbers inside names by value.

    >>> sorted(["img10", "img2", "Img1"], key=natural)
    ['Img1', 'img2', 'img10']
    """
    parts = re.split(r"(\d+)", name.casefold())
    return [int(part) if index % 2 else part for index, part in enumerate(parts)], name


def entries(path: Path) -> tuple[list[str], list[str]]:
    """The names of the sub-folders and of the files here, in natural order; hidden ones are ignored.

    What is neither, such as a link to nothing, counts as a file: that it can't be read is found when it is.
    """
    folders: list[str] = []
    files: list[str] = []
    with os.scandir(path) as found:
        for entry in found:
            if not entry.name.startswith("."):
                (folders if entry.is_dir() else files).append(entry.name)
    return sorted(folders, key=natural), sorted(files, key=natural)


def find(
    root: Path | None,
    places: Iterable[str],
    parts: Sequence[str],
    cure: str,
    enough: Callable[[Iterable[bool]], bool] = all,
) -> Path:
    """The first place in the data root that has all (or any) of these parts; `cure` says what to put there."""
    root = data_root(root)
    for place in places:
        if enough((root / place / part).exists() for part in parts):
            return root / place
    raise UserError(f"{cure} in {root}, or name another data root by --data-root or $SSIL_DATA")
