"""The settings of a classifier: the options of `ssil learn` and the parameters of the scikit-learn estimator."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from ssil.core.errors import UserError
from ssil.core.network_input import GREY_MEAN, GREY_STD, NetworkInput
from ssil.core.settings import Positive, Rate, Settings, setting, validated
from ssil.data.image_index import Preprocessing

if TYPE_CHECKING:
    from ssil.learning.registry import ConfiguredMethod
    from ssil.nn.first_weights import FirstWeights

ExemplarRule = Literal["keep", "reservoir", "recent"]
"""What becomes of the exemplars of a known class when more images of it arrive."""


class ClassifierSettings(Settings):
    """How a classifier learns. The `fixed` settings stay as they were at the first update; others may change."""

    backbone: str = setting("resnet18", "the network", fixed=True)
    image_size: int = setting(64, "pixels per side", fixed=True, ge=1, le=2048)
    grey: bool = setting(False, "see images without colour", fixed=True)
    method: str = setting("eeil", "how classes are learnt, see `ssil methods`", fixed=True)
    freeze: bool = setting(False, "learn only the head, on features of --init, computed once", fixed=True)
    options: dict[str, Any] = setting({}, "the method's own options")
    memory: Positive = setting(2000, "images to keep in all")
    memory_mb: float | None = setting(None, "megabytes of images to keep, instead of a number", gt=0)
    exemplars: ExemplarRule = setting(
        "reservoir", "of a known class: keep the first ones, a reservoir of all ever seen, or the most recent"
    )
    flip: bool = setting(True, "whether mirrored images are as good")
    epochs: Positive = setting(30, "of the first update")
    later_epochs: Positive = setting(20, "of each later update")
    batch: Positive = setting(32, "new images in a mini-batch")
    lr: Rate = setting(0.05, "learning rate")
    seed: int = setting(0, "of first weights, exemplars, batches", ge=0)

    input: NetworkInput | None = setting(None, "what the first weights need of images", fixed=True, hidden=True)

    def preprocessing(self) -> Preprocessing:
        """Return the preprocessing of images."""
        colour = Preprocessing(self.image_size, 3, "auto", self.flip)
        grey = Preprocessing(self.image_size, 1, "auto", self.flip, GREY_MEAN, GREY_STD)
        return (grey if self.grey else colour).for_weights(self.input).resolved()

    def configured(self) -> "ConfiguredMethod":
        """Return the method with its options, under the training settings of the classifier."""
        from ssil.learning.registry import configure  # imports torch, which `ssil learn --help` need not

        training = {
            "epochs": self.epochs,
            "later_epochs": self.later_epochs,
            "batch": self.batch,
            "lr": self.lr,
            "milestones": (max(1, round(0.5 * self.epochs)), max(1, round(0.85 * self.epochs))),
        }
        return configure(self.method, "paper", training, self.options)


def with_weights_settings(given: Mapping[str, Any], weights: "FirstWeights | None") -> dict[str, Any]:
    """Return the settings that the user gave, with those that the first weights decide.

    An image size that the user gave stays.

    Raises:
        UserError: The user gave another backbone than that of the weights, or another number of channels.
    """
    if weights is None:
        return dict(given)
    from ssil.nn.first_weights import decided_settings

    settings = {**given, **decided_settings(weights, given)}
    if not (needed := weights.input):
        return settings
    grey = needed.channels == 1
    if given.get("grey", grey) != grey:
        raise UserError(
            f"grey: the weights {weights.name} are for {'grey' if grey else 'colour'} images; change --grey"
        )
    return {"image_size": needed.size, **settings, "grey": grey}


FIXED = tuple(ClassifierSettings.names(fixed=True))
"""The settings that stay as they were at the first update."""


def make_settings(given: Mapping[str, Any]) -> ClassifierSettings:
    """Return validated settings; raise UserError with one line about the first value that does not fit."""
    return validated(ClassifierSettings, given)
