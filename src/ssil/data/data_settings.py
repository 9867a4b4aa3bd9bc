"""The settings that decide which data set is loaded, which part of it, and how its images are preprocessed."""

from pathlib import Path
from typing import Self

from pydantic import model_validator

from ssil.core.errors import did_you_mean
from ssil.core.network_input import NetworkInput
from ssil.core.plugins import names_code
from ssil.core.settings import MAX_SHOWN, Positive, Settings, setting

AUGMENTATIONS = ("crop", "shift", "none")
"""The built-in training views of image files."""


class DataSettings(Settings, group="Data"):
    """A data set and the part of it to use; `None` leaves a choice to the data set.

    `class_list`, `min_per_class`, `max_per_class` and the built-in values of `augment` are for image files only.
    `train_per_class` and `test_per_class` are numbers of glyphs to draw; of other sets they keep the images with the
    smallest SHA-256 of their pixels.

    >>> DataSettings(dataset="digits", classes=5).test_per_class is None
    True
    """

    dataset: str = setting("glyphs", "a name (see `ssil datasets`), a folder, a store, a .csv, .parquet or .npz file")
    classes: Positive | None = setting(None, "only the first N classes")
    class_list: Path | None = setting(None, "only the classes named in this file, one per line", how=True, group="Data")
    min_per_class: Positive | None = setting(None, "leave out classes with fewer images (image files)")
    max_per_class: Positive | None = setting(None, "use at most N images per class (image files)")
    train_per_class: Positive | None = setting(None, "training images per class")
    test_per_class: Positive | None = setting(None, "test images per class")
    least: float | None = setting(
        None,
        "make classes uneven: the smallest keeps this part of its training images",
        alias="imbalance",
        gt=0,
        le=1,
    )
    split_seed: int | None = setting(None, "of a random test split (default: 0)", ge=0)
    image_size: Positive | None = setting(None, "pixels per side, where the data set leaves a choice", le=8192)
    augment: str | None = setting(
        None,
        "training views: crop, shift or none (image files: random resized crops, small shifts, none of these), or "
        "FILE.py:function of your own (all images; see docs/own-backbone.md)",
    )
    brightness: float | None = setting(
        None, "jitter the brightness of training images by up to this part, e.g. 0.25", gt=0, le=1
    )
    validation: float = setting(
        0.0, "test on this part of the training images, for choosing settings", alias="validate", ge=0, lt=1
    )
    input: NetworkInput | None = setting(None, "the size and normalisation that first weights need", hidden=True)
    data_root: Path | None = setting(None, "where downloads are or go (default: $SSIL_DATA)", how=True)
    strict: bool = setting(False, "stop at anything odd about the image files, instead of going on", how=True)
    in_memory: bool | None = setting(
        None, "hold all image files in memory (default: if a quarter of it is enough)", how=True
    )

    @model_validator(mode="after")
    def _known_augmentation(self) -> Self:
        if self.augment not in (None, *AUGMENTATIONS) and not names_code(str(self.augment)):
            hint = did_you_mean(
                str(self.augment), AUGMENTATIONS, f"give {', '.join(AUGMENTATIONS)}, or FILE.py:function"
            )
            raise ValueError(f"augment: {str(self.augment)[:MAX_SHOWN]!r} is not known; {hint}")
        return self

    @property
    def built_in_augment(self) -> str | None:
        """The built-in augmentation; "none" where a function of the user's takes its place."""
        return "none" if self.augment and names_code(self.augment) else self.augment
