"""Prediction inputs: the same pixels as in an update, in the order of the files."""

from io import BytesIO
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from ssil.classifier.classifier_settings import make_settings
from ssil.classifier.image_file import ImageFile
from ssil.classifier.images import image_samples
from ssil.classifier.prediction_inputs import BATCH_SIZE, THREAD_SHARE, InputBatch, read_inputs

PREPROCESSING = make_settings({"image_size": 16}).preprocessing()


def photo(path: Path, width: int, height: int) -> Path:
    pixels = np.random.default_rng(width).integers(256, size=(height, width, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return path


def found(*paths: Path) -> InputBatch:
    batches = [*read_inputs([str(path) for path in paths], BytesIO(), PREPROCESSING)]
    names = tuple(chain.from_iterable(one.names for one in batches))
    remarks = tuple(chain.from_iterable(one.remarks for one in batches))
    return InputBatch(names, np.concatenate([one.views for one in batches]), remarks)


@pytest.mark.parametrize("suffix", ["png", "jpg"])
@pytest.mark.parametrize("side", [7, 20, 31, 32, 70])
def test_what_is_predicted_has_the_pixels_of_what_is_learnt(tmp_path: Path, suffix: str, side: int) -> None:
    path = photo(tmp_path / f"it.{suffix}", side, side + 5)
    learnt = image_samples([ImageFile.from_bytes("it", path.read_bytes())], [0], PREPROCESSING).images
    assert np.array_equal(found(path).views, learnt.fetch(torch.tensor([0])).numpy())


def test_images_come_in_order_with_remarks_on_those_that_cant_be_read(tmp_path: Path) -> None:
    first = photo(tmp_path / "0000.png", 16, 16).read_bytes()
    for number in range(1, BATCH_SIZE + THREAD_SHARE + 1):
        (tmp_path / f"{number:04}.png").write_bytes(first)
    (tmp_path / "0003.png").write_bytes(first[:-40])
    batch = found(tmp_path)
    expected = [number for number in range(BATCH_SIZE + THREAD_SHARE + 1) if number != 3]
    assert [int(Path(name).stem) for name in batch.names] == expected
    assert len(batch.views) == len(expected)
    assert [Path(remark.path).stem for remark in batch.remarks] == ["0003"]


def test_no_image_that_can_be_read_is_an_empty_batch(tmp_path: Path) -> None:
    (tmp_path / "it.png").write_bytes(b"no image")
    assert found(tmp_path).views.shape == (0, 16, 16, 3)
