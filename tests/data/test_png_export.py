"""Data sets as folders of PNG files."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from ssil.core.errors import UserError
from ssil.core.samples import Samples
from ssil.data.augmentation import generic
from ssil.data.dataset import Dataset
from ssil.data.png_export import export_png, folder_names
from ssil.data.resident_images import Resident


def made(classes: tuple[str, ...], channels: int = 3) -> Dataset:
    pixels = torch.randint(256, (7, 5, 4, channels), generator=torch.Generator().manual_seed(0)).byte()
    labels = torch.tensor([0, 1, 0, 1, 1, 0, 1])
    train, test = (Samples(Resident(pixels[part]), labels[part]) for part in (slice(0, 5), slice(5, 7)))
    return Dataset("made", train, test, classes, generic(5, 4, channels))


@pytest.mark.parametrize("channels", [1, 3])
def test_every_pixel_is_there(tmp_path: Path, channels: int) -> None:
    dataset, calls = made(("ant", "bee"), channels), list[tuple[int, int]]()
    assert export_png(dataset, tmp_path / "out", lambda *call: calls.append(call)) == 7
    places = {"train": [("ant", 1), ("bee", 1), ("ant", 2), ("bee", 2), ("bee", 3)], "test": [("ant", 1), ("bee", 1)]}
    for part, samples in (("train", dataset.train), ("test", dataset.test)):
        for pixels, (name, number) in zip(samples.images.fetch(torch.arange(len(samples))), places[part], strict=True):
            with Image.open(tmp_path / "out" / part / name / f"{number:06d}.png") as image:
                assert np.array_equal(np.asarray(image).reshape(5, 4, channels), pixels.numpy())
    assert len(list(tmp_path.glob("out/*/*/*"))) == 7
    assert calls == [(done, 7) for done in range(1, 8)]


def test_a_directory_that_exists_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="exists; give a new directory"):
        export_png(made(("a", "b")), tmp_path)


def test_it_appears_as_a_whole(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_png(made(("old", "b")), tmp_path / "out", stop)
    assert not (tmp_path / "out").exists()
    export_png(made(("new", "b")), tmp_path / "out")
    assert {path.name for path in tmp_path.glob("out/train/*")} == {"new", "b"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_unwritable_place(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="can't be written"):
        export_png(made(("a", "b")), tmp_path / "file" / "out")


def test_names_that_file_systems_take() -> None:
    names = folder_names(["n/a", "..", ".hidden", "what?", "tail. ", "\x00\x01", "x" * 300, "é" * 150])
    assert names == ("n_a", "_", "hidden", "what_", "tail", "__", "x" * 200, "é" * 100)


@pytest.mark.parametrize("pair", [("a/b", "a:b"), ("Crane", "crane"), ("..", "_"), ("x" * 300, "x" * 301)])
def test_classes_that_would_share_a_folder(pair: tuple[str, str]) -> None:
    with pytest.raises(UserError, match="would share the folder"):
        folder_names(pair)
