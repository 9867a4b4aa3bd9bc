"""The input of a model of the `transformers` library, from its file preprocessor_config.json."""

from collections.abc import Mapping
from typing import Any

from ssil.core.errors import UserError
from ssil.core.network_input import Interpolation, NetworkInput
from ssil.core.settings import validated

INTERPOLATIONS: dict[int, Interpolation] = {2: "bilinear", 3: "bicubic"}
"""The interpolation by Pillow's number of it."""
WHOLE_FROM = 384
"""From this size on, ConvNeXt sees whole images instead of their centre."""


def network_input(processor: Mapping[str, Any], name: str) -> NetworkInput:
    """Return the input that a file describes; raise UserError if images can't be prepared like that here.

    A model that takes images of any shape sees the centred square.

    >>> network_input({"size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224}, "resample": 3}, "a")
    NetworkInput(size=224, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225), interpolation='bicubic', crop=0.875)
    """
    size, crop = _size_and_crop(processor, name)
    if (resample := processor.get("resample", 2)) not in INTERPOLATIONS:
        raise UserError(f"init: {name} resizes by Pillow's filter {resample}; only 2 and 3 (bicubic) are known here")
    factor = 255 * processor.get("rescale_factor", 1 / 255) if processor.get("do_rescale", True) else 255.0
    normalised = processor.get("do_normalize", True)
    usual = NetworkInput(size=1)
    mean = processor.get("image_mean", usual.mean) if normalised else (0.0,) * 3
    std = processor.get("image_std", usual.std) if normalised else (1.0,) * 3
    values = {"mean": [value / factor for value in mean], "std": [value / factor for value in std]}
    known = {"size": size, "crop": crop, "interpolation": INTERPOLATIONS[resample]}
    return validated(NetworkInput, known | values)


def _size_and_crop(processor: Mapping[str, Any], name: str) -> tuple[int, float | str]:
    """Return the pixels per side, and the part of an image that is seen."""
    size = _side(processor.get("size"), name)
    cropped = processor.get("do_center_crop", "crop_size" in processor)
    whole = not isinstance(processor.get("size"), Mapping) or "shortest_edge" not in processor["size"]
    if "crop_pct" in processor and processor["crop_pct"] is not None:
        return size, "whole" if size >= WHOLE_FROM else processor["crop_pct"]
    if not cropped:
        return size, "whole" if whole else 1.0
    crop = _side(processor.get("crop_size"), name)
    if crop > size or (whole and crop != size and isinstance(processor["size"], Mapping)):
        raise UserError(f"init: {name} crops {crop} pixels from images of {size} in a way that is not known here")
    return crop, crop / size


def _side(value: Any, name: str) -> int:
    """Return the pixels per side that a number or a table states."""
    sides = {*value.values()} if isinstance(value, Mapping) else {value}
    if len(sides) != 1 or not isinstance(side := sides.pop(), int):
        raise UserError(f"init: {name} wants images of {value}, not of one height and width; give another model")
    return side
