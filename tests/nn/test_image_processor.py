"""The input that a preprocessor_config.json describes, as published models state it."""

from typing import Any

import pytest

from ssil.core.errors import UserError
from ssil.core.network_input import IMAGENET_MEAN, IMAGENET_STD
from ssil.nn.image_processor import network_input

HALF = [0.5, 0.5, 0.5]
VIT = {"do_normalize": True, "do_resize": True, "image_mean": HALF, "image_std": HALF, "resample": 2, "size": 224}
DINOV2 = {
    "crop_size": {"height": 224, "width": 224},
    "do_center_crop": True,
    "image_mean": IMAGENET_MEAN,
    "image_std": IMAGENET_STD,
    "resample": 3,
    "rescale_factor": 0.00392156862745098,
    "size": {"shortest_edge": 256},
}
CLIP = {"crop_size": 224, "do_center_crop": True, "image_mean": HALF, "image_std": HALF, "resample": 3, "size": 224}
CONVNEXT: dict[str, Any] = {"crop_pct": 0.875, "size": {"shortest_edge": 224}, "resample": 3}


@pytest.mark.parametrize(
    ("processor", "size", "crop", "interpolation"),
    [
        (VIT, 224, "whole", "bilinear"),
        (VIT | {"size": {"height": 384, "width": 384}}, 384, "whole", "bilinear"),
        (DINOV2, 224, 0.875, "bicubic"),
        (CLIP, 224, 1.0, "bicubic"),
        (CONVNEXT, 224, 0.875, "bicubic"),
        (CONVNEXT | {"size": {"shortest_edge": 384}}, 384, "whole", "bicubic"),
        ({"size": {"shortest_edge": 256}}, 256, 1.0, "bilinear"),
        (DINOV2 | {"do_center_crop": False}, 256, 1.0, "bicubic"),
    ],
)
def test_size_and_crop(processor: dict[str, Any], size: int, crop: float | str, interpolation: str) -> None:
    found = network_input(processor, "a")
    assert (found.size, found.crop, found.interpolation) == (size, crop, interpolation)


@pytest.mark.parametrize(
    ("changed", "mean", "std"),
    [
        ({}, 0.5, 0.5),
        ({"do_normalize": False}, 0.0, 1.0),
        ({"rescale_factor": 1 / 127.5}, 0.25, 0.25),
        ({"do_rescale": False, "image_mean": [127.5] * 3, "image_std": [255.0] * 3}, 0.5, 1.0),
    ],
)
def test_normalisation_is_of_pixels_between_0_and_1(changed: dict[str, Any], mean: float, std: float) -> None:
    found = network_input(VIT | changed, "a")
    assert found.mean == pytest.approx((mean,) * 3)
    assert found.std == pytest.approx((std,) * 3)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"resample": 1}, "init: a resizes by Pillow's filter 1; only 2 and 3"),
        ({"size": {"height": 224, "width": 192}}, "init: a wants images of .*, not of one height and width"),
        ({"size": None}, "init: a wants images of None"),
        ({"size": {"height": 256, "width": 256}, "crop_size": 224}, "init: a crops 224 pixels from images of 256"),
        ({"crop_size": 256}, "init: a crops 256 pixels from images of 224"),
        ({"image_std": [0.0, 1.0, 1.0]}, "input: mean and std need a value"),
    ],
)
def test_what_is_not_known_here_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        network_input(VIT | changed, "a")
