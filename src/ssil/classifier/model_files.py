"""Files of a model, which may be a stranger's: each is checked before it is used, and named if it is wrong."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from ssil.classifier.images import intact
from ssil.core.errors import UserError
from ssil.core.files import checksum, write_json
from ssil.data.decode import UnreadableError, measure
from ssil.data.image_index import content

FORMAT = 1
LONGEST = 200
"""Bytes of a folder's name; file systems have room for 255."""


def entries(folder: Path) -> Iterator["os.DirEntry[str]"]:
    """All that is below a folder; what vanishes meanwhile is left out, and no link is followed."""
    left = [str(folder)]
    while left:
        with suppress(OSError), os.scandir(left.pop()) as found:
            for entry in found:
                yield entry
                if entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)


def refuse_strange(folder: Path) -> None:
    """A link could lead out of the model, where an update would write; a pipe would keep a reader waiting."""
    for entry in entries(folder):
        if entry.is_symlink() or not (entry.is_file() or entry.is_dir() or not Path(entry.path).exists()):
            raise UserError(f"model: {entry.path} is neither a file nor a folder; remove it, or don't trust the model")


def seal(path: Path, said: Mapping[str, Any]) -> None:
    """A JSON file with its own checksum."""
    write_json(path, {**said, "checksum": _checksum(said)})


def _checksum(said: Mapping[str, Any]) -> str:
    return checksum(json.dumps(said, sort_keys=True, ensure_ascii=False).encode())


def sealed(path: Path) -> dict[str, Any]:
    """What `seal` has written; a damaged or strange file is named."""
    try:
        said = json.loads(content(path))
        whole = said.pop("checksum") == _checksum(said)
    except Exception as error:  # of any kind that a stranger can bring about
        raise UserError(f"model: {path} can't be read ({reason(error)}); restore it, or roll back") from None
    if not whole:
        raise UserError(f"model: {path} is damaged (its checksum differs); restore it, or roll back")
    if said.get("format") != FORMAT:
        raise UserError(f"model: {path} has format {said.get('format')!r}; this ssil reads format {FORMAT}")
    return dict(said)


def tensors(path: Path, digest: str) -> dict[str, Tensor]:
    """Weights, all of them numbers."""
    try:
        data = path.read_bytes()
        if checksum(data) != digest:
            raise UserError(f"model: {path} is damaged (its checksum differs); restore it, or roll back")
        found = safetensors.torch.load(data)
    except (OSError, SafetensorError, MemoryError) as error:
        raise UserError(f"model: {path} can't be read ({reason(error)}); restore it, or roll back") from None
    for name, tensor in found.items():
        if not tensor.isfinite().all():
            raise UserError(f"model: {name} in {path} has values that are no numbers; restore it, or roll back")
    return found


def picture(path: Path, digest: str) -> bytes:
    """An encoded picture, of a size that can be looked at."""
    data = intact(path, digest)
    try:
        measure(data)
    except UnreadableError as error:
        raise UserError(f"model: {path} can't be read ({error}); delete it, or restore it") from None
    return data


def text(said: object) -> str:
    """A string that can be written."""
    if not isinstance(said, str):
        raise TypeError(f"{said!r} is no text")
    said.encode()
    return said


def reason(error: Exception) -> str:
    """An error in one line."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def folder_name(class_name: str) -> str:
    """A class's name as that of a folder, on any system.

    >>> folder_name("Müller & Söhne"), folder_name("bee/hive"), folder_name("..")
    ('Müller & Söhne', 'bee%2Fhive', '%2E.')
    """
    named = re.sub(r'[/\\:*?"<>|%\x00-\x1f]', lambda found: quote(found[0], safe=""), class_name)
    named = re.sub(r"^\.", "%2E", named)
    short = named.encode()[:LONGEST].decode(errors="ignore")
    return named if short == named else f"{short}~{checksum(class_name.encode())}"
