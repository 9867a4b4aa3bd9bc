"""`checksums.json`: the checksums of a run's record and predictions, so that damage is found before they are used.

A folder without this file, of an earlier version, is read without them.
"""

import json
from pathlib import Path

from ssil.core.errors import UserError
from ssil.core.files import checksum, read_file, write_atomic, write_json

CHECKSUMS = "checksums.json"
ARRAYS = "arrays"


def is_checked(path: Path) -> bool:
    """Return whether this is a file of a run that `write_checked` writes: a record or predictions."""
    return path.name == "record.json" or path.parent.name == ARRAYS


def write_checked(path: Path, data: bytes) -> None:
    """Write a file atomically, and before it its checksum.

    The checksum of the content that is replaced is kept beside the new one: both contents are valid if the process is
    killed in between.
    """
    file, name = _place(path)
    known = read_checksums(file)
    before = [checksum(read_file(path))] if path.exists() else []
    write_json(file, {**known, name: [*dict.fromkeys([*before, checksum(data)])]})
    write_atomic(path, data)


def read_checked(path: Path) -> bytes:
    """Return the content of a file that `write_checked` wrote, or of one whose checksum is not known.

    Raises:
        OSError: The file can't be read.
        UserError: It is damaged, or `checksums.json` is.
    """
    file, name = _place(path)
    data: bytes | None = None
    while data != (data := read_file(path)):  # again, if another process has replaced both files in between
        expected = read_checksums(file).get(name)
        if expected is None or checksum(data) in expected:
            return data
    cure = f"restore it, or remove {CHECKSUMS} if it is right"
    raise UserError(f"run: {path} is damaged (its checksum is not in {file}); {cure}")


def _place(path: Path) -> tuple[Path, str]:
    """Return the file that has the checksum of `path`, and the name of `path` in it."""
    folder = path.parents[path.parent.name == ARRAYS]
    return folder / CHECKSUMS, str(path.relative_to(folder))


def read_checksums(path: Path) -> dict[str, list[str]]:
    """Return the content of checksums.json, {} if there is none; raise UserError if it is damaged."""
    try:
        found = json.loads(read_file(path))
        if not isinstance(found, dict) or not all(isinstance(values, list) for values in found.values()):
            raise ValueError("no lists by name")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        cure = "restore it, or remove it if the record is right"
        raise UserError(f"run: {path} can't be read ({error}); {cure}") from None
    return found
