"""Bad files, each with its line in the report; the rest goes on."""

import os
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from ssil.core.cache_folder import cache_dir
from ssil.core.errors import UserError
from ssil.data import file_validation
from ssil.data.data_settings import DataSettings
from ssil.data.dataset import Dataset
from ssil.data.encoded_images import Encoded
from ssil.data.image_index import Files
from ssil.data.load import load


def paint(folder: Path, count: int = 4, size: tuple[int, int] = (40, 30)) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        Image.effect_noise(size, 50 + number).convert("RGB").save(folder / f"{number}.jpg", quality=95)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in "ab":
        paint(tmp_path / name)
    return tmp_path


def reasons(dataset: Dataset) -> dict[str, str]:
    return {remark.path: remark.reason for remark in dataset.remarks}


def _bomb(path: Path) -> None:
    """A PNG of a few bytes that claims to have 12,000 x 12,000 pixels."""
    header = (12_000).to_bytes(4, "big") * 2 + b"\x08\x02\x00\x00\x00"
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * 1000)), (b"IEND", b""))
    body = b"".join(
        len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big") for kind, data in chunks
    )
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)


def _truncated(path: Path) -> None:
    whole = (path.parent / "0.jpg").read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


def _panorama(path: Path) -> None:
    Image.new("RGB", (30_000, 20)).save(path, format="JPEG")


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (lambda path: path.touch(), "empty"),
    "text": (lambda path: path.write_text("hello"), "not an image"),
    "truncated": (_truncated, "truncated"),
    "bomb": (_bomb, "more than 89,478,485"),
    "panorama": (_panorama, "30,000 x 20"),
    "link": (lambda path: path.symlink_to("nowhere"), "no such file"),
    "pipe": (os.mkfifo, "not a regular file"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_has_its_line_and_the_rest_goes_on(tree: Path, kind: str) -> None:
    make, reason = BAD[kind]
    make(tree / "a" / "bad.jpg")
    dataset = load(DataSettings(dataset=str(tree)))
    assert len(dataset.train) + len(dataset.test) == 8
    (remark,) = dataset.left_out
    assert remark.path == "a/bad.jpg"
    assert reason in remark.reason
    assert "\n" not in remark.reason
    with pytest.raises(UserError, match=r"a/bad\.jpg: .*--strict"):
        load(DataSettings(dataset=str(tree), strict=True))


def test_a_file_that_may_not_be_read(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Files.read

    def refused(self: Files, index: int) -> bytes:
        if self.names[index] == "b/1.jpg":
            raise PermissionError(13, "Permission denied")
        return read(self, index)

    monkeypatch.setattr(Files, "read", refused)
    assert reasons(load(DataSettings(dataset=str(tree)))) == {"b/1.jpg": "permission denied"}
    monkeypatch.undo()
    assert not load(
        DataSettings(dataset=str(tree))
    ).remarks  # what could not be read is not noted: it was mended without a trace


def test_a_class_of_one_image_is_remarked_on(tree: Path) -> None:
    paint(tree / "c", 1)
    dataset = load(DataSettings(dataset=str(tree)))
    assert dataset.classes == ("a", "b", "c")
    assert "single image" in reasons(dataset)["c"]
    assert not dataset.left_out


def test_classes_that_differ_by_case_are_remarked_on(tree: Path) -> None:
    paint(tree / "A")
    dataset = load(DataSettings(dataset=str(tree)))
    assert len(dataset.classes) == 3
    assert any("case" in reason for reason in reasons(dataset).values())


def test_a_class_without_a_good_image_is_left_out(tree: Path) -> None:
    (tree / "aa").mkdir()
    (tree / "aa" / "x.jpg").write_text("no")
    dataset = load(DataSettings(dataset=str(tree)))
    assert dataset.classes == ("a", "b")
    assert sorted(set(dataset.train.labels.tolist())) == [0, 1]
    assert "no readable image" in reasons(dataset)["aa"]


def test_a_set_of_bad_files_only_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.jpg").write_text("no")
    with pytest.raises(UserError, match=r"no image to train on .*; the first remark is a/x\.jpg: not an image"):
        load(DataSettings(dataset=str(tmp_path)))


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of the files that are decoded."""
    seen: list[int] = []
    check_image = file_validation.check_image

    def spy(data: bytes) -> file_validation.ImageCheck:
        seen.append(len(data))
        return check_image(data)

    monkeypatch.setattr(file_validation, "check_image", spy)
    return seen


def test_files_are_examined_once_and_again_when_they_change(tree: Path, examined: list[int]) -> None:
    (tree / "a" / "bad.jpg").write_text("no")
    first = load(DataSettings(dataset=str(tree)))
    assert len(examined) == 9
    second = load(DataSettings(dataset=str(tree)))
    assert len(examined) == 9
    assert (first.fingerprint, first.remarks) == (second.fingerprint, second.remarks)
    Image.new("RGB", (20, 20), "red").save(tree / "b" / "3.jpg")
    third = load(DataSettings(dataset=str(tree)))
    assert len(examined) == 10
    assert third.fingerprint != first.fingerprint


def test_a_damaged_note_costs_time_only(tree: Path, examined: list[int]) -> None:
    load(DataSettings(dataset=str(tree)))
    for path in cache_dir().glob("surveys-*/*/*.arrow"):
        path.write_bytes(b"damaged")
    load(DataSettings(dataset=str(tree)))
    assert len(examined) == 16


def test_progress_is_told(tree: Path) -> None:
    on_progress: list[tuple[int, int]] = []
    load(DataSettings(dataset=str(tree)), on_progress=lambda done, files: on_progress.append((done, files)))
    assert on_progress[-1] == (8, 8)


def test_files_that_are_all_missing_are_told_of(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("path,label\ngone.jpg,a\nlost.jpg,b\n")
    with pytest.raises(UserError, match=r"no image to train on .*--data-root.*; the first remark is gone\.jpg: no"):
        load(DataSettings(dataset=str(tmp_path / "mine.csv")))


def test_names_that_are_no_text(tree: Path) -> None:
    (tree / "a" / "0.jpg").rename(tree / "a" / os.fsdecode(b"caf\xe9.jpg"))
    (tree / "b" / os.fsdecode(b"\xff.jpg")).write_text("no image")
    for _ in range(2):  # also from the notes
        dataset = load(DataSettings(dataset=str(tree)))
        assert reasons(dataset) == {"b/\ufffd.jpg": "not an image"}
        assert len(dataset.train) + len(dataset.test) == 8


def test_a_file_that_changes_while_it_is_examined_is_examined_again(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_image = file_validation.check_image

    def emptied(data: bytes) -> file_validation.ImageCheck:
        (tree / "a" / "0.jpg").write_bytes(b"")
        return check_image(data)

    monkeypatch.setattr(file_validation, "check_image", emptied)
    load(DataSettings(dataset=str(tree), in_memory=False, image_size=128), threads=1)
    monkeypatch.undo()
    assert reasons(load(DataSettings(dataset=str(tree)))) == {"a/0.jpg": "empty file"}


def test_notes_are_made_one_when_there_are_many(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_validation, "MAX_TABLES", 3)
    for number in range(8):
        paint(tree / f"new{number}", 2)
        load(DataSettings(dataset=str(tree)))
    assert len(list(cache_dir().glob("surveys-*/*/*.arrow"))) > 0
    monkeypatch.setattr(file_validation, "check_image", None)
    assert len(load(DataSettings(dataset=str(tree))).classes) == 10


def test_an_image_to_test_on_that_is_trained_on_is_remarked_on(tmp_path: Path) -> None:
    paint(tmp_path / "train" / "a", 2)
    shutil.copytree(tmp_path / "train", tmp_path / "test")
    (remark,) = load(DataSettings(dataset=str(tmp_path))).remarks
    assert "the first of 2 test image(s) that are also trained on" in remark.reason


def test_limits_count_good_images_to_train_on(tree: Path) -> None:
    for number in range(6):
        Image.effect_noise((40, 30), 80 + number).convert("RGB").save(tree / "a" / f"more{number}.jpg")
        (tree / "b" / f"bad{number}.jpg").write_text("no")
    assert load(DataSettings(dataset=str(tree), min_per_class=5)).classes == ("a",)
    dataset = load(DataSettings(dataset=str(tree), max_per_class=3))
    assert dataset.train.labels.bincount().tolist() == [3, 3]
    assert len(dataset.test) == 3
    with pytest.raises(UserError, match=r"min_per_class: 99 is too many, no class of .* has over 10"):
        load(DataSettings(dataset=str(tree), min_per_class=99))


def test_a_split_does_not_depend_on_the_other_classes(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    chosen = tmp_path_factory.mktemp("lists") / "chosen.txt"
    chosen.write_text("b\n")
    everything, some = load(DataSettings(dataset=str(tree))), load(DataSettings(dataset=str(tree), class_list=chosen))
    of_b = everything.test.images.take((everything.test.labels == 1).nonzero().squeeze(1))
    assert some.test.images.keys() == of_b.keys()


def test_a_subset_holds_no_more_than_itself(tree: Path) -> None:
    images = load(DataSettings(dataset=str(tree), train_per_class=1, image_size=128)).train.images
    assert isinstance(images, Encoded)
    assert (len(images), len(images.held)) == (2, 2)
