import os
import re
from pathlib import Path

import pytest

from ssil.data import image_index
from ssil.data.image_index import Files, plain, why


def test_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    files = Files(tmp_path, ("a", str(tmp_path / "a")))
    assert [files.read(index) for index in range(len(files))] == [b"content"] * 2


def test_what_is_no_image_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_index, "LARGEST_FILE", 3000)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "video").write_bytes(b"1" * 3001)
    reasons = {
        "a\0b": "embedded null byte",
        "\ud800": "'utf-8' codec can't encode",
        "/dev/zero": "not a regular file",
        "pipe": "not a regular file",
        "folder": "is a directory",
        "video": "3,001 bytes: too large for an image file",
        "gone": "no such file or directory",
    }
    files = Files(tmp_path, tuple(reasons))
    for index, reason in enumerate(reasons.values()):
        with pytest.raises(OSError, match=f"(?i){re.escape(reason)}") as raised:
            files.read(index)
        assert why(raised.value).startswith(reason)


def test_plain_names_can_be_written_anywhere() -> None:
    assert plain("Zürich/東京.jpg") == "Zürich/東京.jpg"
    assert plain(os.fsdecode(b"caf\xe9") + "\ud800") == "caf\ufffd\ufffd"
