import os
import stat
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NoReturn

import pytest

from full_disk import file_size_limit
from ssil.core import files
from ssil.core.errors import UserError
from ssil.core.files import (
    append_line,
    checksum,
    create_folder,
    locked,
    read_file,
    replacing,
    write_atomic,
    write_json,
)


class CrashError(Exception):
    """Raised where the process is to stop."""


def crash(*_: object) -> NoReturn:
    raise CrashError


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_a_write_that_dies_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    path = tmp_path / "deep" / "file"
    write_atomic(path, b"old")
    monkeypatch.setattr(*((os, "fsync", crash) if moment == "fsync" else (Path, "replace", crash)))
    with pytest.raises(CrashError):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert [file.name for file in path.parent.iterdir()] == ["file"]
    monkeypatch.undo()
    write_atomic(path, b"new")
    assert [file.name for file in path.parent.iterdir()] == ["file"]
    assert path.read_bytes() == b"new"


def test_what_is_renamed_has_been_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file before the rename, its folder after it: else a power cut may leave an empty file."""
    events: list[str] = []
    replace = Path.replace

    def renamed(part: Path, path: Path) -> None:
        events.append("rename")
        replace(part, path)

    monkeypatch.setattr(os, "fsync", lambda descriptor: events.append("folder" if is_folder(descriptor) else "file"))
    monkeypatch.setattr(Path, "replace", renamed)
    write_atomic(tmp_path / "file", b"content")
    assert events == ["file", "rename", "folder"]


def is_folder(descriptor: int) -> bool:
    return stat.S_ISDIR(os.fstat(descriptor).st_mode)


def test_json_without_nan(tmp_path: Path) -> None:
    write_json(tmp_path / "file", {"é": [1, None]})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "file", {"x": float("nan")})
    assert (tmp_path / "file").read_text() == '{\n "é": [\n  1,\n  null\n ]\n}\n'


def test_several_writers_of_one_file_do_not_share_a_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with replacing(path, unique=True) as first:
        first.write(b"first")
        with replacing(path, unique=True) as second:
            second.write(b"second")
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_checksum_is_the_beginning_of_a_sha256() -> None:
    whole = sha256(b"data").hexdigest()
    assert (checksum(b"data", 64), checksum(b"data"), checksum(b"data", 16)) == (whole, whole[:32], whole[:16])


def test_a_locked_directory_is_refused_and_its_lock_file_stays(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    busy = pytest.raises(UserError, match="another process is at work")
    with locked(folder, "run", ours=False), busy, locked(folder, "run", ours=True):
        pass
    assert [file.name for file in folder.iterdir()] == ["lock"]
    with locked(folder, "run", ours=True):
        pass


@pytest.mark.parametrize("name", ["file", ".file.part"])
def test_a_link_is_not_written_through(tmp_path: Path, name: str) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / name).symlink_to("victim")
    with suppress(UserError):
        write_atomic(tmp_path / "file", b"new")
    assert (tmp_path / "victim").read_text() == "precious"


def test_only_regular_files_are_replaced_appended_to_and_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("missing")
    for name in ("pipe", "link"):
        with pytest.raises(UserError, match=f"^file: .*{name} is no regular file; "):
            write_atomic(tmp_path / name, b"new")
        with pytest.raises(OSError, match=name):
            append_line(tmp_path / name, "new")
        with pytest.raises(OSError, match=name):
            read_file(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe"]


def test_a_line_that_has_no_room_is_not_written_in_part(tmp_path: Path) -> None:
    append_line(tmp_path / "log", "first")
    with file_size_limit(10), pytest.raises(OSError, match="too large"):
        append_line(tmp_path / "log", "second")
    assert (tmp_path / "log").read_text() == "first\n"
    append_line(tmp_path / "log", "third, ü")
    assert (tmp_path / "log").read_text() == "first\nthird, ü\n"


def test_a_lock_with_content_is_somebody_elses(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("my notes")
    with pytest.raises(UserError, match="lock is no lock of ssil's"), locked(tmp_path, "run", ours=True):
        pass
    assert (tmp_path / "lock").read_text() == "my notes"


def test_new_folders_are_flushed_in_those_above_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed = list[Path]()
    monkeypatch.setattr(files, "flush_folder", flushed.append)
    create_folder(tmp_path / "a" / "b")
    create_folder(tmp_path / "a" / "b")
    assert flushed == [tmp_path, tmp_path / "a"]
