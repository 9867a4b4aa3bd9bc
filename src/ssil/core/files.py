"""Atomic files, checksums, and the lock that lets one process at a time write to a directory.

Nothing here writes through a symbolic link, or to anything but a regular file: a directory may be a stranger's.
"""

import errno
import fcntl
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

from ssil.core.errors import UserError

LOCK = "lock"


def checksum(data: bytes, digits: int = 32) -> str:
    """Return the first `digits` of the 64 hexadecimal digits of the SHA-256 of `data`."""
    return sha256(data).hexdigest()[:digits]


def json_checksum(value: Mapping[str, Any]) -> str:
    """Return the checksum of a JSON object, whatever the order of its keys and its white space."""
    return checksum(json.dumps(value, sort_keys=True, ensure_ascii=False).encode())


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
    create_folder(path.parent)
    refuse_special([path], "file")
    part = path.with_name(f".{path.name}.{uuid4().hex}.part") if unique else temporary(path)
    part.unlink(missing_ok=True)
    try:
        with open(part, "xb", opener=_open_regular) as file:
            if unique:  # so that `ssil cache clear` can tell it from one that was left
                with suppress(OSError):
                    fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def create_folder(folder: Path) -> None:
    """Create a folder, and those above it that are missing; after a power cut they are still there."""
    missing = [path for path in (folder, *folder.parents) if not path.is_dir()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in reversed(missing):
        flush_folder(path.parent)


def flush_folder(folder: Path) -> None:
    """Write the folder's entries to the disk: without it, a renamed file may be lost in a power cut."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # a folder that can be written but not read can't be flushed
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems without this call: it is not needed there
            raise
    finally:
        os.close(descriptor)


def _open_regular(path: str, flags: int) -> int:
    """Open a file without following a link, and without waiting for the other end of a pipe.

    Raises:
        OSError: The path leads to a link, a folder, a pipe or a device.
    """
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a regular file", path)


def refuse_special(paths: Iterable[Path], kind: str, folders: bool = False) -> None:
    """Raise UserError if one of the paths leads to anything but a regular file, or with `folders` a folder, or nothing.

    Writing to a link would change a file somewhere else, and a pipe would keep the process waiting.
    """
    for path in paths:
        try:
            mode = path.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue
        if not stat.S_ISREG(mode) and not (folders and stat.S_ISDIR(mode)):
            allowed = "neither a regular file nor a folder" if folders else "no regular file"
            raise UserError(f"{kind}: {path} is {allowed}; remove it, or give another place")


def read_file(path: Path) -> bytes:
    """Return the content of a file; raise OSError if it can't be read, or is a folder, a pipe or a device."""
    with open(path, "rb", opener=_open_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return file.read()


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def append_line(path: Path, line: str) -> None:
    """Append a line to a text file; raise OSError, with the file as it was, if the disk has no room for all of it."""
    with open(path, "ab", buffering=0, opener=_open_regular) as file:
        size, left = file.tell(), f"{line}\n".encode()
        try:
            while left:
                left = left[file.write(left) :]
        except OSError:
            file.truncate(size)
            raise


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file with `replacing`."""
    with replacing(path) as file:
        file.write(data)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file with `replacing`; raise ValueError for NaN and infinities, which JSON does not have."""
    write_atomic(path, json_bytes(value))


def json_bytes(value: Any) -> bytes:
    """Return the content of a JSON file."""
    return (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


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
    refuse_special([folder / LOCK], "out")
    try:
        create_folder(folder)
        lock = open(folder / LOCK, "a", opener=_open_regular)  # noqa: SIM115
    except OSError as error:
        raise UserError(f"out: {folder} can't be written ({error.strerror}); give another directory") from None
    with lock as file:
        if os.fstat(file.fileno()).st_size:
            raise UserError(f"out: {folder / LOCK} is no lock of ssil's, it has content; give another directory")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"out: another process is at work in {folder}; wait, or give another") from None
        except OSError as error:
            cure = "give a directory on another file system"
            raise UserError(f"out: {folder} can't be locked ({error.strerror}); {cure}") from None
        yield
