"""Resizing in numpy gives PyTorch's pixels, to the bit: what is learnt and what is predicted see the same."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from ssil.core.network_input import Interpolation
from ssil.data.numpy_resizing import Pixels, resize_pixels

SIDES = st.integers(1, 90)
SCALES = ((375, 500, 224), (400, 400, 224), (300, 301, 224), (200, 180, 224), (64, 64, 64), (1000, 1200, 32), (1, 1, 8))


def noise(height: int, width: int, channels: int, seed: int = 0) -> Pixels:
    return np.random.default_rng(seed).integers(256, size=(height, width, channels), dtype=np.uint8)


def by_torch(image: Pixels, height: int, width: int, interpolation: str) -> Pixels:
    batch = torch.from_numpy(image.reshape(1, *image.shape).transpose(0, 3, 1, 2))
    resized = F.interpolate(batch, (height, width), mode=interpolation, antialias=True)
    return np.asarray(resized.numpy()[0].transpose(1, 2, 0))


def by_numpy(image: Pixels, height: int, width: int, interpolation: Interpolation) -> Pixels:
    out = np.zeros((height, width, image.shape[2]), np.uint8)
    resize_pixels(image, out, interpolation)
    return out


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("height", "width", "size"), SCALES)
def test_usual_sizes(height: int, width: int, size: int, channels: int, interpolation: Interpolation) -> None:
    image = noise(height, width, channels)
    assert np.array_equal(by_numpy(image, size, size, interpolation), by_torch(image, size, size, interpolation))


@settings(deadline=None)
@given(SIDES, SIDES, SIDES, SIDES, st.sampled_from(["bilinear", "bicubic"]), st.integers(0, 9))
def test_any_sizes(height: int, width: int, new: int, other: int, interpolation: Interpolation, seed: int) -> None:
    image = noise(height, width, 3, seed)
    assert np.array_equal(by_numpy(image, new, other, interpolation), by_torch(image, new, other, interpolation))


@pytest.mark.parametrize("value", [0, 255])
def test_black_stays_black_and_white_white(value: int) -> None:
    image = np.full((97, 61, 3), value, np.uint8)
    assert (by_numpy(image, 33, 150, "bilinear") == value).all()


def test_a_part_of_an_image_need_not_be_contiguous() -> None:
    part = noise(90, 80, 3)[7:60, 3:71]
    assert np.array_equal(by_numpy(part, 20, 20, "bilinear"), by_numpy(part.copy(), 20, 20, "bilinear"))
