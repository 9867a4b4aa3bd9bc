"""The input that pretrained weights need: it belongs to the weights, since other images than theirs cost accuracy."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ssil.core.settings import Settings, setting

Interpolation = Literal["bilinear", "bicubic"]
Fraction = Annotated[float, Field(gt=0, le=1)]
Values = tuple[Annotated[float, Field(allow_inf_nan=False)], ...]
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
GREY_MEAN, GREY_STD = (0.5,), (0.25,)
MAX_SIZE = 2048
MIN_CROP_SIZE = 128
"""From this size on, images are photographs, of which training sees random crops."""
CENTRE = 224 / 256
"""The fraction of the short side in a test view of a photograph: as if resized to 256 and cropped to 224."""
VIEW_SCALE = 2
"""Where two views of an image are seen, it is this many times as large, by side, as each of them."""


class NetworkInput(Settings):
    """Size, normalisation, resizing and crop of the images that weights were trained for.

    >>> NetworkInput(size=224, mean=(127 / 255,) * 3, std=(128 / 255,) * 3, interpolation="bicubic").normalisation
    '(x - 127) / 128 of 0..255'
    >>> NetworkInput(size=224).normalisation
    'mean 0.485 0.456 0.406, deviation 0.229 0.224 0.225 of 0..1'
    """

    size: int = setting(..., "pixels per side", ge=1, le=MAX_SIZE)
    mean: Values = setting(IMAGENET_MEAN, "is subtracted from pixels between 0 and 1, by channel")
    std: Values = setting(IMAGENET_STD, "what they are then divided by, by channel")
    interpolation: Interpolation = setting("bilinear", "how images are resized")
    crop: Fraction | Literal["whole"] = setting(
        "whole", "the centred square that is seen, as a fraction of the short side, or the whole image, made square"
    )

    @model_validator(mode="after")
    def _channels(self) -> "NetworkInput":
        if len(self.mean) != len(self.std) or len(self.mean) not in (1, 3) or min(self.std) <= 0:
            raise ValueError("input: mean and std need a value for each of 1 or 3 channels, and std one above 0")
        return self

    @property
    def channels(self) -> int:
        """The channels of an image."""
        return len(self.mean)

    @property
    def normalisation(self) -> str:
        """The normalisation as one line."""
        levels = [round(255 * value, 6) for value in (*self.mean, *self.std)]
        if len({*self.mean}) == len({*self.std}) == 1 and all(level.is_integer() for level in levels):
            return f"(x - {levels[0]:g}) / {levels[-1]:g} of 0..255"
        mean, std = (" ".join(f"{value:g}" for value in values) for values in (self.mean, self.std))
        return f"mean {mean}, deviation {std} of 0..1"


def usual_input(size: int, grey: bool) -> NetworkInput:
    """Return the input of a network that was trained here on images of the user's own, from random weights.

    >>> usual_input(64, grey=True).normalisation, usual_input(224, grey=False).crop
    ('mean 0.5, deviation 0.25 of 0..1', 0.875)
    """
    mean, std = (GREY_MEAN, GREY_STD) if grey else (IMAGENET_MEAN, IMAGENET_STD)
    return NetworkInput(size=size, mean=mean, std=std, crop=CENTRE if size >= MIN_CROP_SIZE else 1.0)
