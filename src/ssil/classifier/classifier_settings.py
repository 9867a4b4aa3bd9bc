"""How a classifier learns: fixed when it is made, but for what an update may be told anew."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ssil.core.errors import UserError
from ssil.data.image_index import Preprocessing
from ssil.learning.registry import ConfiguredMethod, configure

Positive = Annotated[int, Field(ge=1)]

FIXED = ("backbone", "image_size", "grey", "method", "freeze")
"""The settings that make the network: they stay what they were at the first update."""


class ModelSettings(BaseModel):
    """The settings of a classifier."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    backbone: str = Field("resnet18", description="the network")
    image_size: int = Field(64, ge=1, le=2048, description="pixels a side at which pictures are seen")
    grey: bool = Field(False, description="see pictures without colour")
    method: str = Field("eeil", description="how classes are learnt, see `ssil methods`")
    freeze: bool = Field(False, description="learn only the head, on features of --init that are computed once")

    options: dict[str, Any] = Field(default_factory=dict, description="the method's own options, name=value")
    memory: Positive = Field(2000, description="pictures to keep in all")
    memory_mb: float | None = Field(None, gt=0, description="megabytes of pictures to keep, instead of a number")
    flip: bool = Field(True, description="mirrored pictures are as good")
    epochs: Positive = Field(30, description="epochs of the first update")
    later_epochs: Positive = Field(20, description="epochs of each later update")
    batch: Positive = Field(32, description="new pictures in a mini-batch")
    lr: float = Field(0.05, gt=0, description="learning rate")
    seed: int = Field(0, ge=0, description="of first weights, exemplars, batches")

    def look(self) -> Preprocessing:
        """How pictures are seen."""
        look = Preprocessing(self.image_size, 3, "auto", self.flip)
        if self.grey:
            look = Preprocessing(self.image_size, 1, "auto", self.flip, (0.5,), (0.25,))
        return look.resolved()

    def configured(self) -> ConfiguredMethod:
        """The method, ready for use."""
        training = {
            "epochs": self.epochs,
            "later_epochs": self.later_epochs,
            "batch": self.batch,
            "lr": self.lr,
            "milestones": (max(1, round(0.5 * self.epochs)), max(1, round(0.85 * self.epochs))),
        }
        return configure(self.method, "paper", training, self.options)


def make_settings(given: dict[str, Any]) -> ModelSettings:
    """Validated settings; a bad value gets one line."""
    try:
        return ModelSettings(**given)
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"{first['loc'][0]}: {first['input']!r} does not fit: {first['msg'].lower()}") from None
