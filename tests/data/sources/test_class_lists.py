from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ssil.data.listing import Files, Listing, Look, Remark
from ssil.data.sources.subset import first, limit, only
from ssil.errors import UserError
from trees import listed

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
def listing(tmp_path: Path) -> Listing:
    """Three images of each class, class after class; the last of each for testing."""
    files = tuple(f"{name}-{number}" for name in NAMES for number in range(3))
    return Listing(
        name="mine",
        source=Files(tmp_path, files),
        labels=np.repeat(np.arange(4), 3),
        classes=NAMES,
        look=Look(32),
        tested=np.tile([False, False, True], 4),
        remarks=(Remark("tench", "smells"),),
        keys=("n1", "n2", "n3", "n4"),
    )


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines))
    return path


def test_classes_by_name_key_and_number_in_the_order_of_the_file(listing: Listing, tmp_path: Path) -> None:
    part = only(listing, write(tmp_path / "list.txt", "\ufeffgoldfish", "", " n2 ", "0"))
    assert part.classes == ("goldfish", "crane (n2)", "tench")
    assert part.keys == ("n4", "n2", "n1")
    assert listed(part) == {name: [f"{name}-{number}" for number in range(3)] for name in part.classes}
    assert part.labels.tolist() == [2, 2, 2, 1, 1, 1, 0, 0, 0]
    assert part.tested is not None
    assert part.tested.tolist() == [False, False, True] * 3
    assert isinstance(part.source, Files)
    assert (part.name, part.look, part.remarks) == (listing.name, listing.look, listing.remarks)


def test_where_classes_are_numbers_a_number_is_a_class(tmp_path: Path) -> None:
    listing = Listing("mine", Held(["a", "b"]), np.array([0, 1]), ("1", "2"), Look(32))
    assert only(listing, write(tmp_path / "list.txt", "1")).source.names == ("a",)
    with pytest.raises(UserError, match="'0' is no class of mine; a class is, say, '1'"):
        only(listing, write(tmp_path / "list.txt", "0"))


def test_other_sources_are_read_through(tmp_path: Path) -> None:
    listing = Listing("mine", Held(["a", "b", "c"]), np.array([1, 0, 1]), ("x", "y"), Look(32))
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
        (["4"], "'4' is no class of mine"),
        ([" ", ""], "lists no class"),
    ],
)
def test_lists_that_are_refused(listing: Listing, tmp_path: Path, lines: list[str], error: str) -> None:
    with pytest.raises(UserError, match=error):
        only(listing, write(tmp_path / "list.txt", *lines))


def test_a_list_must_be_there(listing: Listing, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="can't be read as a list of classes"):
        only(listing, tmp_path / "list.txt")


def test_first_classes(listing: Listing) -> None:
    part = first(listing, 2)
    assert part.classes == NAMES[:2]
    assert len(part) == 6
    assert first(listing, 4).source is listing.source
    for count in (0, 5):
        with pytest.raises(UserError, match=f"classes: {count} must be between 1 and 4"):
            first(listing, count)


def test_at_most_so_many_images_are_drawn_for_training(listing: Listing) -> None:
    part = limit(listing, None, 1, seed=0)
    assert part.labels.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert part.tested is not None
    assert part.tested.tolist() == [False, True] * 4
    draws = {limit(listing, None, 1, seed).source.names for seed in range(9)}
    assert 1 < len(draws) <= 9
    assert limit(listing, None, 1, seed=0).source.names == part.source.names
    assert limit(listing, None, 2, seed=0) is listing


def test_the_draw_of_a_class_does_not_depend_on_others(listing: Listing, tmp_path: Path) -> None:
    alone = only(listing, write(tmp_path / "list.txt", "goldfish"))
    assert limit(alone, None, 1, 0).source.names == limit(listing, None, 1, 0).source.names[-2:]


def test_small_classes_are_not_taken(tmp_path: Path) -> None:
    listing = Listing("mine", Held("abcdef"), np.array([0, 0, 0, 1, 2, 2]), ("x", "y", "z"), Look(32))
    part = limit(listing, 2, 2, seed=0)
    assert part.classes == ("x", "z")
    assert part.labels.tolist() == [0, 0, 1, 1]
    with pytest.raises(UserError, match="min_per_class: 4 is too many, no class of mine has over 3"):
        limit(listing, 4, None, seed=0)
    with pytest.raises(UserError, match="max_per_class: 0 must be at least 1"):
        limit(listing, None, 0, seed=0)
