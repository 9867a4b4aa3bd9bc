"""Records and predictions are compared with their checksums, whatever moment a process was killed at."""

import json
import os
from pathlib import Path

import pytest

from ssil.benchmark import checksums
from ssil.benchmark.checksums import is_checked, read_checked, write_checked
from ssil.core import files
from ssil.core.errors import UserError

NAMES = ["record.json", "arrays/task-01.safetensors"]


@pytest.mark.parametrize("name", NAMES)
def test_a_changed_file_is_named(tmp_path: Path, name: str) -> None:
    for content in (b"one", b"two", b"three"):
        write_checked(tmp_path / name, content)
        assert read_checked(tmp_path / name) == content
    assert is_checked(tmp_path / name)
    (tmp_path / name).write_bytes(b"thief")
    with pytest.raises(UserError, match=rf"^run: .*{name} is damaged .*; restore it, or remove checksums.json"):
        read_checked(tmp_path / name)
    (tmp_path / "checksums.json").unlink()
    assert read_checked(tmp_path / name) == b"thief"


@pytest.mark.parametrize("nth", [1, 2])
def test_both_contents_are_valid_while_one_replaces_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    path, left = tmp_path / "record.json", nth
    write_checked(path, b"one")
    write_checked(path, b"two")
    real = Path.replace

    def replace(self: Path, target: Path) -> Path:
        nonlocal left
        left -= 1
        if not left:
            raise KeyboardInterrupt
        return real(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace)
        with pytest.raises(KeyboardInterrupt):
            write_checked(path, b"three")
    assert read_checked(path) == b"two"
    write_checked(path, b"four")
    assert read_checked(path) == b"four"
    assert len(json.loads((tmp_path / "checksums.json").read_text())["record.json"]) == 2


def test_a_reader_beside_a_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both files may be replaced, more than once, between the readings of the one and of the other."""
    path = tmp_path / "record.json"
    write_checked(path, b"0")
    real, written = files.read_file, list[bytes]()

    def read_file(asked: Path) -> bytes:
        data = real(asked)
        if asked == path and len(written) < 4:
            monkeypatch.setattr(checksums, "read_file", real)
            for _ in range(2):
                written.append(str(len(written) + 1).encode())
                write_checked(path, written[-1])
            monkeypatch.setattr(checksums, "read_file", read_file)
        return data

    monkeypatch.setattr(checksums, "read_file", read_file)
    assert read_checked(path) == b"4"


@pytest.mark.parametrize("content", ["{", "[1]", '{"record.json": 1}', "[" * 100_000, "\x00"])
def test_broken_checksums_are_named(tmp_path: Path, content: str) -> None:
    write_checked(tmp_path / "record.json", b"one")
    (tmp_path / "checksums.json").write_text(content)
    with pytest.raises(UserError, match=r"^run: .*checksums.json can't be read \(.*; restore it, or remove it"):
        read_checked(tmp_path / "record.json")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    write_checked(tmp_path / "record.json", b"one")
    (tmp_path / "checksums.json").unlink()
    os.mkfifo(tmp_path / "checksums.json")
    with pytest.raises(UserError, match="not a regular file"):
        read_checked(tmp_path / "record.json")
