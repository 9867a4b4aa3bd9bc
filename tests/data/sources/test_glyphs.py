from itertools import combinations, islice
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from ssil.core.errors import UserError
from ssil.core.samples import Samples
from ssil.data.data_settings import DataSettings
from ssil.data.dataset import Dataset
from ssil.data.load import load
from ssil.data.sources import glyphs as module
from ssil.data.sources.glyphs import (
    DRAWS,
    FACES,
    FRAGMENTS,
    LARGEST,
    TEST_FACES,
    TRAIN_FACES,
    alphabet,
    distort,
    master,
)


def pixels(part: Samples) -> Tensor:
    return part.images.fetch(torch.arange(len(part)))


@pytest.fixture(scope="module")
def small() -> Dataset:
    return load(DataSettings(dataset="glyphs", classes=3, train_per_class=6, test_per_class=4))


def test_what_is_made(small: Dataset) -> None:
    assert small.synthetic
    assert small.train.images.shape == (28, 28, 1)
    assert small.train.labels.tolist() == [0] * 6 + [1] * 6 + [2] * 6
    assert small.test.labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert small.classes[0] == "A latin capital letter a"
    assert len({row.numpy().tobytes() for row in pixels(small.train)}) == 18


def test_same_options_same_bytes(small: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSIL_CACHE", str(tmp_path))
    again = load(DataSettings(dataset="glyphs", classes=3, train_per_class=6, test_per_class=4))
    assert again.fingerprint == small.fingerprint
    assert [file.suffix for file in tmp_path.iterdir()] == [".npz"]


def test_an_image_does_not_depend_on_how_many_are_made(small: Dataset) -> None:
    more = load(DataSettings(dataset="glyphs", classes=4, train_per_class=9, test_per_class=4))
    assert torch.equal(pixels(more.test)[:12], pixels(small.test))
    assert torch.equal(pixels(more.train).view(4, 9, -1)[:3, :6], pixels(small.train).view(3, 6, -1))


def test_another_seed_gives_other_images(small: Dataset) -> None:
    other = load(DataSettings(dataset="glyphs", classes=3, train_per_class=6, test_per_class=4, split_seed=1))
    assert other.classes == small.classes
    assert other.fingerprint != small.fingerprint


def test_the_cache_is_used_and_a_damaged_one_is_made_again(
    small: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSIL_CACHE", str(tmp_path))
    load(DataSettings(dataset="glyphs", classes=3, train_per_class=6, test_per_class=4))
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-100])
    assert (
        load(DataSettings(dataset="glyphs", classes=3, train_per_class=6, test_per_class=4)).fingerprint
        == small.fingerprint
    )
    monkeypatch.setattr(module, "_draw_all", lambda *_: pytest.fail("made though it was in the cache"))
    assert (
        load(DataSettings(dataset="glyphs", classes=3, train_per_class=6, test_per_class=4)).fingerprint
        == small.fingerprint
    )


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SSIL_CACHE", str(tmp_path / "file"))
    assert len(load(DataSettings(dataset="glyphs", classes=1, train_per_class=1, test_per_class=1)).train) == 1


def test_image_size_is_an_option() -> None:
    assert load(
        DataSettings(dataset="glyphs", classes=2, train_per_class=2, test_per_class=1, image_size=16)
    ).train.images.shape == (
        16,
        16,
        1,
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": 2001}, "classes=2001 must be between 1 and 2,000"),
        ({"classes": 2, "train_per_class": 10**9}, "train_per_class="),
        ({"image_size": 4}, "image_size=4"),
    ],
)
def test_bad_options(options: dict[str, int], message: str) -> None:
    with pytest.raises(UserError, match=message):
        load(DataSettings(dataset="glyphs", **options))


def test_faces_of_training_and_testing_are_apart() -> None:
    assert not set(TRAIN_FACES) & set(TEST_FACES)


def missing(face: str) -> bytes:
    """The box that a face draws for what it has not."""
    return master("\U0010fffe", face).tobytes()


def check_distinct(characters: list[str]) -> None:
    for face in FACES:
        bitmaps = {master(character, face).tobytes() for character in characters}
        assert len(bitmaps) == len(characters)
        assert missing(face) not in bitmaps
        assert bytes(master("A", face).size) not in bitmaps


def test_the_first_hundred_are_distinct_and_varied() -> None:
    first = list(islice(alphabet(), 100))
    check_distinct(first)
    assert first == list(islice(alphabet(), 100))
    for twins in ("cC", "oO0", "sS", "xX", "vV", "wW", "zZ", "pP"):
        assert sum(twin in first for twin in twins) <= 1
    scripts = {
        name.split()[1] for name in load(DataSettings(dataset="glyphs", train_per_class=1, test_per_class=1)).classes
    }
    assert {"latin", "greek", "cyrillic", "georgian", "armenian", "digit"} <= scripts


@pytest.mark.slow
def test_all_two_thousand_are_distinct() -> None:
    characters = list(alphabet())
    assert len(characters) == LARGEST
    check_distinct(characters)


def uniform(count: int, size: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(count, DRAWS, generator=generator), torch.rand(count, size, size, generator=generator)


def test_distortion_of_an_image_does_not_depend_on_its_batch() -> None:
    glyphs = torch.from_numpy(np.stack([master(c, FACES[0]) for c in "AЖ2"])) / 255
    others = glyphs[:, None].expand(-1, FRAGMENTS, -1, -1).flip(0)
    draws, noise = uniform(3, 20)
    whole = distort(glyphs, others, draws, noise)
    alone = torch.cat(
        [distort(glyphs[i : i + 1], others[i : i + 1], draws[i : i + 1], noise[i : i + 1]) for i in range(3)]
    )
    assert torch.equal(whole, alone)


def test_every_draw_matters() -> None:
    glyphs = torch.from_numpy(master("R", FACES[0])[None]) / 255
    others = glyphs[:, None].expand(-1, FRAGMENTS, -1, -1)
    draws, noise = uniform(1, 28)
    images = [distort(glyphs, others, draws, noise)]
    for column in range(DRAWS):
        changed = draws.clone()
        changed[:, column] = (changed[:, column] + 0.5) % 1
        images.append(distort(glyphs, others, changed, noise))
    assert all(not torch.equal(a, b) for a, b in combinations(images, 2))
