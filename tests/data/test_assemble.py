import os
from pathlib import Path

import pytest
import torch
from PIL import Image

from ssil.core.errors import UserError
from ssil.core.samples import Samples
from ssil.data.data_settings import DataSettings
from ssil.data.dataset import Dataset
from ssil.data.load import load


def paint(path: Path, names: str | list[str], count: int = 5, size: tuple[int, int] = (20, 10)) -> None:
    """A sub-folder a class, with images of one colour each, the class's brightness and the file's number in it."""
    for label, name in enumerate(names):
        (path / name).mkdir(parents=True)
        for number in range(count):
            Image.new("RGB", size, (20 * label, number, 255)).save(path / name / f"{number}.png")


def pixels(part: Samples) -> torch.Tensor:
    return part.images.fetch(torch.arange(len(part)))


def colours(dataset: Dataset) -> set[tuple[int, int]]:
    both = torch.cat([pixels(dataset.train), pixels(dataset.test)])
    return {(int(p[0, 0, 0]), int(p[0, 0, 1])) for p in both}


def test_one_tree_is_split(tmp_path: Path) -> None:
    paint(tmp_path, ["c10", "c2", "c1"])
    dataset = load(DataSettings(dataset=str(tmp_path)))
    assert dataset.classes == ("c1", "c2", "c10")
    assert dataset.train.images.shape == (64, 64, 3)
    assert dataset.train.labels.bincount().tolist() == [4, 4, 4]
    assert dataset.test.labels.bincount().tolist() == [1, 1, 1]
    assert colours(dataset) == {(20 * label, number) for label in range(3) for number in range(5)}
    expected = torch.tensor([40, 20, 0])  # c1 was painted last
    assert torch.equal(pixels(dataset.train)[:, 0, 0, 0].long(), expected[dataset.train.labels])


def test_a_class_of_one_image_is_for_training(tmp_path: Path) -> None:
    paint(tmp_path, "ab", count=1)
    dataset = load(DataSettings(dataset=str(tmp_path)))
    assert (len(dataset.train), len(dataset.test)) == (2, 0)


def test_the_split_is_seeded(tmp_path: Path) -> None:
    paint(tmp_path, "abcd", count=10)
    prints = [
        load(DataSettings(dataset=str(tmp_path), split_seed=seed, image_size=8)).fingerprint for seed in (0, 0, 1)
    ]
    assert prints[0] == prints[1] != prints[2]


@pytest.mark.parametrize("test", ["test", "val"])
def test_two_trees(tmp_path: Path, test: str) -> None:
    paint(tmp_path / "train", "abc")
    paint(tmp_path / test, "c", count=2)
    dataset = load(DataSettings(dataset=str(tmp_path), image_size=8))
    assert dataset.classes == ("a", "b", "c")
    assert len(dataset.train) == 15
    assert dataset.test.labels.tolist() == [2, 2]


def test_files_that_cannot_be_read_are_listed(tmp_path: Path) -> None:
    paint(tmp_path, "ab")
    (tmp_path / "a" / "notes.txt").write_text("not an image")
    whole = (tmp_path / "b" / "0.png").read_bytes()
    (tmp_path / "b" / "half.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "a" / ".hidden").touch()
    dataset = load(DataSettings(dataset=str(tmp_path)))
    assert [remark.path for remark in dataset.left_out] == ["a/notes.txt", "b/half.png"]
    assert len(dataset.train) + len(dataset.test) == 10


def test_folders_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no sub-folders"):
        load(DataSettings(dataset=str(tmp_path)))


def test_classes_that_are_only_tested_are_left_out(tmp_path: Path) -> None:
    paint(tmp_path / "train", "ab")
    paint(tmp_path / "test", "bx")
    dataset = load(DataSettings(dataset=str(tmp_path)))
    assert dataset.classes == ("a", "b")
    assert any("x" in remark.path for remark in dataset.left_out)


def test_photographs() -> None:
    path = Path(os.environ.get("SSIL_DATA", "")) / "photos"
    if not path.is_dir():
        pytest.skip("photos is not in $SSIL_DATA")
    photos = load(DataSettings(dataset=str(path), classes=5, image_size=32))
    assert (len(photos.train), len(photos.test)) == (20, 5)
    assert photos.remarks == ()
