"""Prediction inputs: the same pixels whether an image stays decoded or not, in the order of the files."""

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from ssil.classifier import prediction_inputs
from ssil.classifier.classifier_settings import make_settings
from ssil.classifier.images import ImageFile, image_samples
from ssil.classifier.prediction_inputs import BATCH_SIZE, THREAD_SHARE, read_inputs

PREPROCESSING = make_settings({"image_size": 16}).preprocessing()


def photo(path: Path, width: int, height: int) -> Path:
    pixels = np.random.default_rng(width).integers(256, size=(height, width, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return path


def found(*paths: Path) -> list[ImageFile]:
    return [
        image for images, _ in read_inputs([str(path) for path in paths], BytesIO(), PREPROCESSING) for image in images
    ]


@pytest.mark.parametrize(
    ("suffix", "side", "decoded"),
    [
        ("png", 20, True),
        ("png", 32, True),
        ("png", 70, True),
        ("jpg", 20, True),
        ("jpg", 32, False),
        ("jpg", 70, False),
    ],
)
def test_decoded_and_encoded_images_give_the_same_pixels(tmp_path: Path, suffix: str, side: int, decoded: bool) -> None:
    path = photo(tmp_path / f"it.{suffix}", side, side + 5)
    (image,) = found(path)
    assert (image.pixels is not None) == decoded
    again = ImageFile.from_bytes(image.name, path.read_bytes())
    one, other = (image_samples((each,), [0], PREPROCESSING).images.fetch(torch.tensor([0])) for each in (image, again))
    assert torch.equal(one, other)


def test_large_images_do_not_stay_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction_inputs, "MAX_HELD_BYTES", 3 * 70 * 70 - 1)
    large, small = found(photo(tmp_path / "large.png", 70, 70), photo(tmp_path / "small.png", 69, 70))
    assert large.pixels is None
    assert small.pixels is not None


def test_images_come_in_order(tmp_path: Path) -> None:
    first = photo(tmp_path / "0000.png", 16, 16).read_bytes()
    for number in range(1, BATCH_SIZE + THREAD_SHARE + 1):
        (tmp_path / f"{number:04}.png").write_bytes(first)
    assert [Path(image.name).stem for image in found(tmp_path)] == [
        f"{n:04}" for n in range(BATCH_SIZE + THREAD_SHARE + 1)
    ]
