"""Folders and files on disk, as far as sources need to know them."""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from posixpath import join
from typing import NamedTuple

from ssil.core.errors import UserError
from ssil.data.cache import data_root
from ssil.data.image_index import Remark, why


def natural(name: str) -> tuple[list[str | int], str]:
    """A key that sorts the numbers inside names by value.

    >>> sorted(["img10", "img2", "Img1"], key=natural)
    ['Img1', 'img2', 'img10']
    """
    parts = re.split(r"(\d+)", name.casefold())
    return [int(part) if index % 2 else part for index, part in enumerate(parts)], name


class Inside(NamedTuple):
    """What is in a folder: names of sub-folders and of files, or a remark that it can't be read."""

    folders: list[str]
    files: list[str]
    remarks: list[Remark]


def inside(root: Path, folder: str) -> Inside:
    """What is in a folder of a tree, in natural order; hidden ones are ignored.

    What is no folder, such as a link to nothing, counts as a file: that it can't be read is found when it is.
    """
    folders: list[str] = []
    files: list[str] = []
    try:
        with os.scandir(root / folder) as found:
            for entry in found:
                if not entry.name.startswith("."):
                    (folders if _is_folder(entry) else files).append(entry.name)
    except OSError as error:
        return Inside([], [], [Remark(folder, why(error))])
    return Inside(sorted(folders, key=natural), sorted(files, key=natural), [])


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def members(root: Path, folder: str) -> tuple[list[str], list[Remark]]:
    """The files of a class, which are those in its folder, and remarks on what else is there."""
    folders, files, remarks = inside(root, folder)
    remarks += [Remark(join(folder, deep), "a folder inside a class is not looked into") for deep in folders]
    return [join(folder, file) for file in files], remarks


def classes(
    root: Path, folder: str, is_class: Callable[[str], object] = bool
) -> tuple[dict[str, list[str]], list[Remark]]:
    """The files of each class, where a class is a sub-folder (with such a name), and remarks on what is in none."""
    folders, loose, remarks = inside(root, folder)
    remarks += unused(folder, [*loose, *(name for name in folders if not is_class(name))])
    groups = {}
    for name in filter(is_class, folders):
        groups[name], more = members(root, join(folder, name))
        remarks += more
    return groups, remarks


def unused(folder: str, names: Iterable[str], reason: str = "it belongs to no class") -> list[Remark]:
    """Remarks on what is in a folder and has no use there."""
    return [Remark(join(folder, name), f"not used: {reason}", left_out=False) for name in names]


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


def text(path: Path) -> str:
    """All of a text file."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"data: {path} can't be read as text: {error}") from error
