"""Files that a killed process leaves whole or not at all, in directories that one process at a time writes to."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from ssil.core.errors import UserError

LOCK = "lock"


def aside(path: Path) -> Path:
    """Where a file is written before it is renamed."""
    return path.with_name(f".{path.name}.part")


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write: a reader sees the old content or the new, never a part, even after a power cut."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with aside(path).open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    aside(path).replace(path)
    _flush_folder(path.parent)


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(folder: Path, kind: str, ours: bool) -> Iterator[None]:
    """Hold the directory of a run or a store: one that is not `ours` is refused, and so is a second process."""
    if folder.is_dir() and not ours:
        raise UserError(f"out: {folder} is not empty and holds no {kind}; give a new directory")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("w")
    except OSError as error:
        raise UserError(f"out: {folder} can't be written ({error.strerror}); give another directory") from None
    with lock as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(f"out: another process is at work in {folder}; wait, or give another") from None
        yield


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file all at once."""
    with replacing(path) as file:
        file.write(data)


def write_json(path: Path, value: Any) -> None:
    """A JSON file, atomically; NaN is not JSON and is refused."""
    write_atomic(path, (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())
