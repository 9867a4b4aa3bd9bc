"""Pictures that are to be named are seen alike, whether they stay decoded or not."""

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from ssil.classifier import prediction_inputs as galleries
from ssil.classifier.classifier_settings import make_settings
from ssil.classifier.images import Picture, Pictures
from ssil.classifier.prediction_inputs import FEW, PART, gallery

LOOK = make_settings({"image_size": 16}).look()


def photo(path: Path, width: int, height: int) -> Path:
    pixels = np.random.default_rng(width).integers(256, size=(height, width, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return path


def found(*paths: Path) -> list[Picture]:
    return [picture for pictures, _ in gallery([str(path) for path in paths], BytesIO(), LOOK) for picture in pictures]


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
def test_a_picture_is_seen_alike_decoded_or_not(tmp_path: Path, suffix: str, side: int, decoded: bool) -> None:
    path = photo(tmp_path / f"it.{suffix}", side, side + 5)
    (picture,) = found(path)
    assert (picture.pixels is not None) == decoded
    again = Picture.of(picture.name, path.read_bytes())
    one, other = (Pictures((each,)).samples([0], LOOK).images.fetch(torch.tensor([0])) for each in (picture, again))
    assert torch.equal(one, other)


def test_large_pictures_do_not_stay_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(galleries, "SMALL", 3 * 70 * 70 - 1)
    large, small = found(photo(tmp_path / "large.png", 70, 70), photo(tmp_path / "small.png", 69, 70))
    assert large.pixels is None
    assert small.pixels is not None


def test_pictures_come_in_order(tmp_path: Path) -> None:
    first = photo(tmp_path / "0000.png", 16, 16).read_bytes()
    for number in range(1, PART + FEW + 1):
        (tmp_path / f"{number:04}.png").write_bytes(first)
    assert [Path(picture.name).stem for picture in found(tmp_path)] == [f"{n:04}" for n in range(PART + FEW + 1)]
