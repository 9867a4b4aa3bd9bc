"""The same batches from files, from memory, from held exemplars; with one thread and with four."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from ssil.core.errors import UserError
from ssil.core.randomness import Randomness
from ssil.data.augmentation import Transform
from ssil.data.data_settings import DataSettings
from ssil.data.dataset import Dataset
from ssil.data.encoded_images import Decoded, Encoded
from ssil.data.load import load
from ssil.data.prefetch import decoding_pool

COUNT = 12


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two classes of noisy photographs, some larger than twice the view, one turned by its camera, one PNG."""
    folder = tmp_path_factory.mktemp("photos")
    noise = np.random.default_rng(0)
    for number in range(COUNT):
        scale = 3 if number % 4 == 0 else 1
        small = Image.fromarray(noise.integers(0, 255, (30, 40, 3), dtype=np.uint8))
        image = small.resize((scale * 190, scale * 150), Image.Resampling.BICUBIC)
        exif = Image.Exif()
        exif[0x0112] = 6 if number == 1 else 1
        path = folder / "ab"[number % 2] / f"{number}.{'png' if number == 2 else 'jpg'}"
        path.parent.mkdir(exist_ok=True)
        image.save(path, exif=exif)
    return folder


def opened(photos: Path, augment: str, threads: int | None = None, **options: object) -> Dataset:
    return load(DataSettings(dataset=str(photos), image_size=96, augment=augment, **options), threads)


def batches(dataset: Dataset) -> list[torch.Tensor]:
    images, transform = dataset.train.images, dataset.transform
    indices = torch.randperm(len(images), generator=torch.Generator().manual_seed(1))
    draws = transform.draw(len(indices), Randomness(0).at("augment", 0))
    return [images.fetch(indices), transform.train(images.fetch(indices, draws), draws)]


@pytest.mark.parametrize("augment", ["crop", "shift"])
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("in_memory", [True, False])
def test_threads_and_memory_change_nothing(photos: Path, augment: str, threads: int, in_memory: bool) -> None:
    expected = opened(photos, augment, threads=2, in_memory=False)
    found = opened(photos, augment, threads=threads, in_memory=in_memory)
    assert found.fingerprint == expected.fingerprint
    assert all(map(torch.equal, batches(found), batches(expected)))


@pytest.mark.parametrize("augment", ["crop", "shift"])
@pytest.mark.parametrize("form", ["bytes", "decoded"])
def test_held_exemplars_are_the_same_and_not_read(
    photos: Path, augment: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = opened(photos, augment, in_memory=False)
    images = dataset.train.images
    assert isinstance(images, Encoded)
    expected = batches(dataset)
    images.hold(torch.arange(len(images)), form)  # type: ignore[arg-type]
    decoded = [row for row, held in images.held.items() if isinstance(held, np.ndarray)]
    assert 0 < len(decoded) < len(images) if form == "decoded" else not decoded
    _forbid_reading(images, monkeypatch)
    assert all(map(torch.equal, batches(dataset), expected))
    images.hold(torch.arange(2), "bytes")
    assert len(images.held) == 2


def test_what_is_all_in_memory_stays_there(photos: Path) -> None:
    images = opened(photos, "crop", in_memory=True).train.images
    assert isinstance(images, Encoded)
    images.hold(torch.arange(1), "decoded")
    assert len(images.held) == len(images)


def test_decoding_threads_start_no_others(photos: Path) -> None:
    before = torch.get_num_threads()
    opened(photos, "crop", threads=3)
    assert {decoding_pool(3).submit(torch.get_num_threads).result() for _ in range(6)} == {1}
    assert torch.get_num_threads() == before


def _forbid_reading(images: Encoded, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(source: object, index: int) -> bytes:
        raise AssertionError(index)

    monkeypatch.setattr(type(images.source), "read", read)


def test_views_that_never_change_are_held_as_pixels(photos: Path) -> None:
    assert isinstance(opened(photos, "shift").train.images, Decoded)
    crops = opened(photos, "crop").train.images
    assert isinstance(crops, Encoded)
    assert len(crops.held) == len(crops)


def test_draws_of_a_slot_do_not_depend_on_the_others(photos: Path) -> None:
    dataset = opened(photos, "crop")
    images, transform = dataset.train.images, dataset.transform
    draws = transform.draw(6, Randomness(0).at("augment", 0))
    whole = images.fetch(torch.arange(6), draws)
    slots = torch.tensor([1, 4])
    assert torch.equal(images.fetch(slots, draws.take(slots)), whole[slots])


def test_a_file_that_vanishes_is_named(photos: Path, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        for number in range(3):
            Image.new("RGB", (20, 20), (number, 0, 0)).save(tmp_path / name / f"{number}.png")
    images = load(DataSettings(dataset=str(tmp_path), in_memory=False)).train.images
    for path in tmp_path.rglob("*.png"):
        path.unlink()
    with pytest.raises(UserError, match=r"png was good, but can't be read any more"):
        images.fetch(torch.arange(2))
    del photos


def test_transforms_without_crops_draw_as_they_always_have() -> None:
    draw: Callable[[Transform], torch.Tensor] = lambda transform: transform.draw(5, Randomness(3).at("augment", 7)).flip  # noqa: E731
    shifted = Transform((0.5,), (0.5,), pad=2, flip=True)
    assert shifted.draw(5, Randomness(3).at("augment", 7)).crop is None
    assert torch.equal(draw(shifted), draw(Transform((0.5,), (0.5,), pad=2, flip=True, crop=True)))
