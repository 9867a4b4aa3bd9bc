"""The settings that decide which data set is loaded, which part of it, and how its images are seen."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[int, Field(ge=1)]
HOW: dict[str, Any] = {"how": True}
"""Marks a field that says only how a run is carried out: it does not change the result."""


class DataSettings(BaseModel):
    """A data set and the part of it to use; `None` leaves a choice to the data set.

    `class_list`, `min_per_class`, `max_per_class` and `augment` are for sets of image files only. `train_per_class` and
    `test_per_class` are numbers of glyphs to draw; of other sets they keep the images with the smallest SHA-256 of
    their pixels.

    >>> DataSettings(dataset="digits", classes=5).test_per_class is None
    True
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True)

    dataset: str = Field(
        "glyphs", description="a name (see `ssil datasets`), a folder, a store, a .csv, .parquet or .npz file"
    )
    classes: Positive | None = Field(None, description="only the first so many classes")
    class_list: Path | None = Field(
        None, description="only the classes named in this file, one a line", json_schema_extra=HOW
    )
    min_per_class: Positive | None = Field(None, description="leave out classes with fewer images (image files)")
    max_per_class: Positive | None = Field(None, description="use at most so many images a class (image files)")
    train_per_class: Positive | None = Field(None, description="training images a class")
    test_per_class: Positive | None = Field(None, description="test images a class")
    least: float | None = Field(
        None, gt=0, le=1, description="make classes uneven: the smallest has this part of its training images"
    )
    split_seed: int | None = Field(None, ge=0, description="of a random test split (default: 0)")
    image_size: Positive | None = Field(None, description="pixels a side, where the data set leaves a choice")
    augment: Literal["crop", "shift", "none"] | None = Field(
        None, description="training views of image files: random resized crops, small shifts, or none of these"
    )
    validation: float = Field(
        0.0, alias="validate", ge=0, lt=1, description="test on this part of the training images, for choosing settings"
    )
    data_root: Path | None = Field(
        None, description="where downloads are or go (default: $SSIL_DATA)", json_schema_extra=HOW
    )
    strict: bool = Field(
        False, description="stop at anything odd about the image files, instead of going on", json_schema_extra=HOW
    )
    in_memory: bool | None = Field(
        None,
        description="hold all image files in memory (default: if a quarter of it is enough)",
        json_schema_extra=HOW,
    )
