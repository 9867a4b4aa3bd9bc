import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from image_trees import listed
from ssil.core.errors import UserError
from ssil.data import image_index as module
from ssil.data.image_index import Files, ImageIndex, Preprocessing, Remark, as_utf8, error_reason


def test_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    files = Files(tmp_path, ("a", str(tmp_path / "a")))
    assert [files.read(index) for index in range(len(files))] == [b"content"] * 2


def test_what_is_no_image_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FILE_BYTES", 3000)
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
        assert error_reason(raised.value).startswith(reason)


def test_plain_names_can_be_written_anywhere() -> None:
    assert as_utf8("Zürich/東京.jpg") == "Zürich/東京.jpg"
    assert as_utf8(os.fsdecode(b"caf\xe9") + "\ud800") == "caf\ufffd\ufffd"


NAMES = ("tench", "crane (n2)", "crane (n3)", "goldfish")


@dataclass(frozen=True)
class Held:
    """A source that is not of files."""

    names: Sequence[str]

    def read(self, index: int) -> bytes:
        return self.names[index].encode()

    def __len__(self) -> int:
        return len(self.names)


@pytest.fixture
def image_index(tmp_path: Path) -> ImageIndex:
    """Three images of each class, class after class; the last of each for testing."""
    files = tuple(f"{name}-{number}" for name in NAMES for number in range(3))
    return ImageIndex(
        name="mine",
        source=Files(tmp_path, files),
        labels=np.repeat(np.arange(4), 3),
        classes=NAMES,
        preprocessing=Preprocessing(32),
        is_test=np.tile([False, False, True], 4),
        remarks=(Remark("tench", "smells"),),
        keys=("n1", "n2", "n3", "n4"),
    )


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines))
    return path


def test_classes_by_name_and_key_in_the_order_of_the_file(image_index: ImageIndex, tmp_path: Path) -> None:
    part = image_index.listed_classes(write(tmp_path / "list.txt", "\ufeffgoldfish", "", " n2 ", "n1"))
    assert part.classes == ("goldfish", "crane (n2)", "tench")
    assert part.keys == ("n4", "n2", "n1")
    assert listed(part) == {name: [f"{name}-{number}" for number in range(3)] for name in part.classes}
    assert part.labels.tolist() == [2, 2, 2, 1, 1, 1, 0, 0, 0]
    assert part.is_test is not None
    assert part.is_test.tolist() == [False, False, True] * 3
    assert isinstance(part.source, Files)
    assert (part.name, part.preprocessing, part.remarks) == (
        image_index.name,
        image_index.preprocessing,
        image_index.remarks,
    )


def test_other_sources_are_read_through(tmp_path: Path) -> None:
    image_index = ImageIndex("mine", Held(["a", "b", "c"]), np.array([1, 0, 1]), ("x", "y"), Preprocessing(32))
    part = image_index.listed_classes(write(tmp_path / "list.txt", "y"))
    assert (len(part.source), part.source.names) == (2, ("a", "c"))
    assert part.source.read(1) == b"c"
    assert part.is_test is None
    assert image_index.listed_classes(write(tmp_path / "list.txt", "y", "x")).source is image_index.source


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        (["tensh"], "'tensh' is no class of mine; did you mean 'tench'"),
        (["crane"], r"'crane' is no class of mine; did you mean 'crane \(n2\)' or 'crane \(n3\)'"),
        (["tench", "n1"], "'tench' and 'n1' are the same class"),
        (["n1", "n1"], "'n1' and 'n1' are the same class"),
        (["0"], "'0' is no class of mine; a class is, for example, 'tench'"),
        ([" ", ""], "lists no class"),
    ],
)
def test_lists_that_are_refused(image_index: ImageIndex, tmp_path: Path, lines: list[str], error: str) -> None:
    with pytest.raises(UserError, match=error):
        image_index.listed_classes(write(tmp_path / "list.txt", *lines))


def test_a_list_must_be_there(image_index: ImageIndex, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"list.txt can't be read as text: .*No such file"):
        image_index.listed_classes(tmp_path / "list.txt")
    (tmp_path / "list.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match=r"list.txt can't be read as text: .*utf-8"):
        image_index.listed_classes(tmp_path / "list.txt")


def test_first_classes(image_index: ImageIndex) -> None:
    part = image_index.first_classes(2)
    assert part.classes == NAMES[:2]
    assert len(part) == 6
    assert image_index.first_classes(4).source is image_index.source
    for count in (0, 5):
        with pytest.raises(UserError, match=f"classes: {count} must be between 1 and 4"):
            image_index.first_classes(count)
