"""The settings of a classifier: the options of `ssil learn` and the parameters of the scikit-learn estimator."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from ssil.core.errors import UserError
from ssil.core.network_input import GREY_MEAN, GREY_STD, VIEW_SCALE, NetworkInput
from ssil.core.plugins import short_name
from ssil.core.settings import NotNegative, Positive, Rate, Settings, setting, validated
from ssil.data.image_index import Preprocessing

if TYPE_CHECKING:
    from ssil.learning.registry import ConfiguredMethod
    from ssil.nn.first_weights import FirstWeights

ExemplarRule = Literal["keep", "reservoir", "recent"]
"""What becomes of the exemplars of a known class when more images of it arrive."""


Tuned = Literal["last", "all"]
"""What of the network is trained: its last stage and the head, or everything."""

DEFAULT_WEIGHTS, DEFAULT_METHOD, DEFAULT_VIEWS = "efficientnet_lite0", "slda", 2
"""What a new classifier uses if the user names no weights: frozen, with this method; docs/adr/0009 and 0015 say why."""


class ClassifierSettings(Settings):
    """How a classifier learns. The `fixed` settings stay as they were at the first update; others may change.

    The defaults are those of training from random weights, and of settings that a model file lacks; those of a new
    classifier are in `with_start_settings`.
    """

    backbone: str = setting("resnet18", "the network; one that you name starts at random but for --init", fixed=True)
    image_size: int = setting(64, "pixels per side", fixed=True, ge=1, le=2048)
    grey: bool = setting(False, "see images without colour", fixed=True)
    method: str = setting("eeil", "how classes are learnt, see `ssil methods`", fixed=True)
    freeze: bool = setting(False, "keep the weights of --init, and learn on their features, computed once", fixed=True)
    tune: Tuned | None = setting(None, "train the last stage or all of the weights, for many images", fixed=True)
    views: int = setting(
        1, "1: the whole image; 2: its centre too, enlarged: better for photos, half as fast", fixed=True, ge=1, le=2
    )
    options: dict[str, Any] = setting({}, "the method's own options")
    memory: NotNegative = setting(2000, "images to keep in all, hold-out set included")
    memory_mb: float | None = setting(None, "megabytes of images to keep, instead of a number", gt=0, le=1e9)
    exemplars: ExemplarRule = setting(
        "reservoir", "of a known class: keep the first ones, a reservoir of all ever seen, or the most recent"
    )
    flip: bool = setting(True, "whether mirrored images are as good")
    epochs: Positive = setting(30, "of the first update")
    later_epochs: Positive = setting(20, "of each later update")
    batch: Positive = setting(32, "new images in a mini-batch")
    lr: Rate = setting(0.05, "learning rate")
    unknown_loss: Annotated[float, Field(ge=0, le=50)] = setting(
        5.0, "percent of known images that may be called unknown; 0: no image is ever unknown"
    )
    seed: int = setting(0, "of first weights, exemplars, batches", ge=0)

    input: NetworkInput | None = setting(None, "what the first weights need of images", fixed=True, hidden=True)

    def preprocessing(self) -> Preprocessing:
        """Return the preprocessing of images."""
        colour = Preprocessing(self.image_size, 3, "auto", self.flip)
        grey = Preprocessing(self.image_size, 1, "auto", self.flip, GREY_MEAN, GREY_STD)
        seen = (grey if self.grey else colour).for_weights(self.input).resolved()
        return replace(seen, size=VIEW_SCALE * seen.size) if self.views > 1 else seen

    def described(self) -> str:
        """Return method, network and input as one line.

        >>> ClassifierSettings(method="slda", backbone="efficientnet_lite0", image_size=224, views=2).described()
        'slda on efficientnet_lite0 at 224 pixels, two views'
        """
        views = ", two views" if self.views > 1 else ""
        return f"{self.method} on {short_name(self.backbone)} at {self.image_size} pixels{views}"

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


def with_start_settings(
    given: Mapping[str, Any], init: str | None, *, scratch: bool
) -> tuple[dict[str, Any], str | None]:
    """Return the settings with which a new classifier starts, and the name of its first weights or None.

    Without weights and backbone of the user's own it starts from `DEFAULT_WEIGHTS`, which stay as they are (then
    `DEFAULT_METHOD` learns) unless the user asks for tuning.

    Args:
        given: The settings that the user gave.
        init: The first weights that the user named.
        scratch: Whether to start from random weights.

    Raises:
        UserError: Settings contradict each other.

    >>> with_start_settings({"memory": 9}, None, scratch=False)
    ({'freeze': True, 'method': 'slda', 'views': 2, 'memory': 9}, 'efficientnet_lite0')
    >>> with_start_settings({"tune": "all"}, None, scratch=False)
    ({'tune': 'all'}, 'efficientnet_lite0')
    >>> with_start_settings({}, None, scratch=True)
    ({}, None)
    """
    tuned, frozen = given.get("tune"), given.get("freeze")
    random = scratch or (not init and "backbone" in given)
    if scratch and (init or tuned or frozen):
        raise UserError("scratch: random weights are all trained; leave out --init, --freeze and --tune, or --scratch")
    if tuned and (frozen or random):
        raise UserError(
            "tune: it trains known weights; leave out --freeze, and name the weights of a --backbone by --init"
        )
    if random or init:
        return dict(given), init
    defaults = {} if tuned or frozen is False else {"freeze": True, "method": DEFAULT_METHOD, "views": DEFAULT_VIEWS}
    return {**defaults, **given}, DEFAULT_WEIGHTS


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
            f"grey: the weights {weights.name} are for {'grey' if grey else 'colour'} images; "
            f"{'add' if grey else 'leave out'} --grey, or train from random weights: --scratch"
        )
    return {"image_size": needed.size, **settings, "grey": grey}


FIXED = tuple(ClassifierSettings.names(fixed=True))
"""The settings that stay as they were at the first update."""


def make_settings(given: Mapping[str, Any]) -> ClassifierSettings:
    """Return validated settings; raise UserError with one line about the first value that does not fit."""
    return validated(ClassifierSettings, given)
