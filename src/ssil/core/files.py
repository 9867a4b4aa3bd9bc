"""Atomic files, checksums, and the lock that lets one process at a time write to a directory."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

from ssil.core.errors import UserError

LOCK = "lock"


def checksum(data: bytes, digits: int = 32) -> str:
    """Return the first `digits` of the 64 hexadecimal digits of the SHA-256 of `data`."""
    return sha256(data).hexdigest()[:digits]


def temporary(path: Path) -> Path:
    """Return the path to which a file or directory is written before it is renamed to `path`."""
    return path.with_name(f".{path.name}.part")


@contextmanager
def replacing(path: Path, unique: bool = False) -> Iterator[BinaryIO]:
    """Open a binary file that replaces `path` when the block ends; an error in the block leaves `path` as it was.

    Readers see the old content or the new content, never a part of it, even after a power cut.

    Args:
        path: The file to replace. Missing folders are created.
        unique: Write to a temporary file of a random name, for a directory that several processes may write to without
            holding its lock.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{uuid4().hex}.part") if unique else temporary(path)
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _flush_folder(path.parent)


def _flush_folder(folder: Path) -> None:
    """Write the folder's entries to the disk: without it, a renamed file may be lost in a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file with `replacing`."""
    with replacing(path) as file:
        file.write(data)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file with `replacing`; raise ValueError for NaN and infinities, which JSON does not have."""
    write_atomic(path, (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())


@contextmanager
def locked(folder: Path, kind: str, ours: bool) -> Iterator[None]:
    """Create a directory if it is missing, and hold its lock. The lock file stays; the lock ends with the process.

    Args:
        folder: The directory of a run, a store or a model.
        kind: What the directory holds, for error messages: "run", "store", "model".
        ours: Whether an existing directory holds, or may hold, a `kind`.

    Raises:
        UserError: The directory exists and is not `ours`, can't be written, or is locked by another process.
    """
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
