from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from image_trees import listed
from ssil.core.errors import UserError
from ssil.data.image_index import Files, ImageIndex, Preprocessing, Remark
from ssil.data.sources.class_selection import first, only

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
def listing(tmp_path: Path) -> ImageIndex:
    """Three images of each class, class after class; the last of each for testing."""
    files = tuple(f"{name}-{number}" for name in NAMES for number in range(3))
    return ImageIndex(
        name="mine",
        source=Files(tmp_path, files),
        labels=np.repeat(np.arange(4), 3),
        classes=NAMES,
        look=Preprocessing(32),
        tested=np.tile([False, False, True], 4),
        remarks=(Remark("tench", "smells"),),
        keys=("n1", "n2", "n3", "n4"),
    )


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines))
    return path


def test_classes_by_name_and_key_in_the_order_of_the_file(listing: ImageIndex, tmp_path: Path) -> None:
    part = only(listing, write(tmp_path / "list.txt", "\ufeffgoldfish", "", " n2 ", "n1"))
    assert part.classes == ("goldfish", "crane (n2)", "tench")
    assert part.keys == ("n4", "n2", "n1")
    assert listed(part) == {name: [f"{name}-{number}" for number in range(3)] for name in part.classes}
    assert part.labels.tolist() == [2, 2, 2, 1, 1, 1, 0, 0, 0]
    assert part.tested is not None
    assert part.tested.tolist() == [False, False, True] * 3
    assert isinstance(part.source, Files)
    assert (part.name, part.look, part.remarks) == (listing.name, listing.look, listing.remarks)


def test_other_sources_are_read_through(tmp_path: Path) -> None:
    listing = ImageIndex("mine", Held(["a", "b", "c"]), np.array([1, 0, 1]), ("x", "y"), Preprocessing(32))
    part = only(listing, write(tmp_path / "list.txt", "y"))
    assert (len(part.source), part.source.names) == (2, ("a", "c"))
    assert part.source.read(1) == b"c"
    assert part.tested is None
    assert only(listing, write(tmp_path / "list.txt", "y", "x")).source is listing.source


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        (["tensh"], "'tensh' is no class of mine; did you mean 'tench'"),
        (["crane"], r"'crane' is no class of mine; did you mean 'crane \(n2\)' or 'crane \(n3\)'"),
        (["tench", "n1"], "'tench' and 'n1' are the same class"),
        (["n1", "n1"], "'n1' and 'n1' are the same class"),
        (["0"], "'0' is no class of mine; a class is, say, 'tench'"),
        ([" ", ""], "lists no class"),
    ],
)
def test_lists_that_are_refused(listing: ImageIndex, tmp_path: Path, lines: list[str], error: str) -> None:
    with pytest.raises(UserError, match=error):
        only(listing, write(tmp_path / "list.txt", *lines))


def test_a_list_must_be_there(listing: ImageIndex, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"list.txt can't be read as text: .*No such file"):
        only(listing, tmp_path / "list.txt")
    (tmp_path / "list.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match=r"list.txt can't be read as text: .*utf-8"):
        only(listing, tmp_path / "list.txt")


def test_first_classes(listing: ImageIndex) -> None:
    part = first(listing, 2)
    assert part.classes == NAMES[:2]
    assert len(part) == 6
    assert first(listing, 4).source is listing.source
    for count in (0, 5):
        with pytest.raises(UserError, match=f"classes: {count} must be between 1 and 4"):
            first(listing, count)
