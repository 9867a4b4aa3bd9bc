"""What is in the cache, by kind, and its removal, which is safe beside processes that use the cache.

A removed file is computed again, or downloaded again, when it is needed; a process that has it open keeps it.
"""

import fcntl
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ssil.core.cache_folder import cache_dir

KINDS: Final = {
    "unfinished": "left by processes that were killed while they wrote",
    "validation": "which image files are good; made again by decoding them",
    "arrays": "images that were drawn; drawn again in seconds",
    "features": "features of images by first weights; computed again",
    "weights": "named first weights; read again from the folder of weights",
    "other": "data sets, and files of others; never removed",
}
"""The kinds of files, and what they are."""

UNFINISHED = re.compile(r"\..*\.part|.*\.partial")
PATTERNS: Final = {
    "validation": re.compile(r"surveys-\d+/[0-9a-f]{16}/\d+\.arrow"),
    "features": re.compile(r"features-[0-9a-f]+-\w+\.npz"),
    "weights": re.compile(r"weights/[^/]+-[0-9a-f]{16}-[0-9a-f]{32}\.safetensors"),
    "arrays": re.compile(r"(glyphs|characters)-[0-9a-f]{16}\.npz"),
}
"""The paths of each kind, relative to the cache."""
DAY = 86_400.0
STALE_DAYS = 30.0
"""Validation results of folders that were not validated for so long are removed if nothing else is said."""
SECONDS_TO_LOCK = 60.0
"""An unfinished file that is younger than this may be somebody's who has not locked it yet."""


@dataclass(frozen=True)
class CacheFile:
    """A file of the cache."""

    path: Path
    kind: str
    size: int
    changed: float
    """When it was written, in seconds of the clock."""

    @property
    def days(self) -> float:
        """Its age in days."""
        return max(0.0, time.time() - self.changed) / DAY


def cache_files() -> Iterator[CacheFile]:
    """Yield all files of the cache; links and what disappears meanwhile are left out."""
    root = cache_dir()
    for path in sorted(root.rglob("*")):
        try:
            status = path.lstat()
        except OSError:
            continue
        if path.is_file() and not path.is_symlink():
            yield CacheFile(path, _kind(path.relative_to(root)), status.st_size, status.st_mtime)


def _kind(path: Path) -> str:
    if UNFINISHED.fullmatch(path.name):
        return "unfinished"
    return next((kind for kind, pattern in PATTERNS.items() if pattern.fullmatch(path.as_posix())), "other")


def clearable(kind: str | None, older_than: float | None) -> list[CacheFile]:
    """Return the files to remove: of a kind, or without one what is unfinished and stale validation results.

    Args:
        kind: One of `KINDS` but "other".
        older_than: Only files that were written more than this number of days ago.
    """
    limits = {kind: 0.0} if kind else {"unfinished": 0.0, "validation": STALE_DAYS}
    return [
        file
        for file in cache_files()
        if file.kind in limits and file.days >= (limits[file.kind] if older_than is None else older_than)
    ]


def remove(file: CacheFile) -> bool:
    """Remove a file of the cache, and its folder if it was the last there; return whether it was removed.

    An unfinished file that a process is writing, whose lock it holds, stays.
    """
    if file.kind == "unfinished" and (file.days * DAY < SECONDS_TO_LOCK or _is_locked(file.path)):
        return False
    file.path.unlink(missing_ok=True)
    for folder in (file.path.parent, file.path.parent.parent):
        if folder.is_relative_to(cache_dir() / "surveys-1"):
            _remove_empty(folder)
    return True


def _is_locked(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _remove_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:  # it is not empty, or another process was faster
        return
