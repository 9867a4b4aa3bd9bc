"""Reading and writing the files of a model directory; each file is validated before use, as it may be a stranger's."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ssil.core.errors import UserError, one_line
from ssil.core.files import checksum, json_checksum, write_json
from ssil.data.decode import UnreadableError, measure
from ssil.data.image_index import error_reason, read_image_file

FORMAT = 1
MAX_FOLDER_NAME = 200
"""Bytes of a folder's name; file systems allow 255."""


def walk(folder: Path) -> Iterator["os.DirEntry[str]"]:
    """Yield all entries below a folder, without following links; what is removed meanwhile is left out."""
    left = [str(folder)]
    while left:
        with suppress(OSError), os.scandir(left.pop()) as found:
            for entry in found:
                yield entry
                if entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)


def refuse_special_files(folder: Path) -> None:
    """Raise UserError if there is anything but files and folders below `folder`.

    A link could lead an update to write outside of the model directory, and a pipe would keep a reader waiting.
    """
    for entry in walk(folder):
        if entry.is_symlink() or not (entry.is_file() or entry.is_dir() or not Path(entry.path).exists()):
            raise UserError(f"model: {entry.path} is neither a file nor a folder; remove it, or don't trust the model")


def write_checked_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON file that contains its own checksum."""
    write_json(path, {**value, "checksum": json_checksum(value)})


def read_checked_json(path: Path) -> dict[str, Any]:
    """Return what `write_checked_json` wrote; raise UserError if the file is damaged or has another format."""
    try:
        value = json.loads(read_image_file(path))
        intact = value.pop("checksum") == json_checksum(value)
    except Exception as error:  # of any type: the file may be made to cause it
        raise UserError(f"model: {path} can't be read ({one_line(error)}); restore it, or roll back") from None
    if not intact:
        raise UserError(f"model: {path} is damaged (its checksum differs); restore it, or roll back")
    if value.get("format") != FORMAT:
        raise UserError(f"model: {path} has format {value.get('format')!r}; this ssil reads format {FORMAT}")
    return dict(value)


def read_image(path: Path, digest: str) -> bytes:
    """Return an encoded image; raise UserError if its checksum differs or it is too large to decode."""
    data = read_checked(path, digest)
    try:
        measure(data)
    except UnreadableError as error:
        raise UserError(f"model: {path} can't be read ({error}); delete it, or restore it") from None
    return data


def read_checked(path: Path, digest: str, cure: str = "delete it, or restore it") -> bytes:
    """Return a file's content; raise UserError if it can't be read, is above 1 GiB, or its checksum differs."""
    try:
        data = read_image_file(path)
    except OSError as error:
        raise UserError(f"model: {path} can't be read ({error_reason(error)}); {cure}") from None
    if checksum(data) != digest:
        raise UserError(f"model: {path} is damaged (its checksum differs); {cure}")
    return data


def text(value: object) -> str:
    """Return `value` if it is a string that can be encoded; raise TypeError or UnicodeError otherwise."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    value.encode()
    return value


def check_digest(digest: str) -> str:
    """Return a checksum of 32 hexadecimal digits; raise ValueError if it is none."""
    if not re.fullmatch("[0-9a-f]{32}", text(digest)):
        raise ValueError(f"{digest!r} is no checksum")
    return digest


def digests_by_class(groups: Sequence[Sequence[str]], classes: int) -> tuple[tuple[str, ...], ...]:
    """Return lists of checksums as tuples, one for each class or none at all; raise ValueError if they are not such."""
    if groups and len(groups) != classes:
        raise ValueError(f"checksums of {len(groups)} classes, not of {classes}")
    return tuple(tuple(map(check_digest, group)) for group in groups)


def folder_name(class_name: str) -> str:
    """Return a class's name as a folder's name that is valid on any system.

    >>> folder_name("Müller & Söhne"), folder_name("bee/hive"), folder_name("..")
    ('Müller & Söhne', 'bee%2Fhive', '%2E.')
    """
    escaped = re.sub(r'[/\\:*?"<>|%\x00-\x1f]', lambda found: quote(found[0], safe=""), class_name)
    escaped = re.sub(r"^\.", "%2E", escaped)
    short = escaped.encode()[:MAX_FOLDER_NAME].decode(errors="ignore")
    return escaped if short == escaped else f"{short}~{checksum(class_name.encode())}"
