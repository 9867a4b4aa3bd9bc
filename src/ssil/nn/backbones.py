"""Backbones by name."""

from functools import partial
from typing import Protocol

from torch import Tensor, nn

from ssil.core import plugins
from ssil.core.errors import UserError
from ssil.nn import efficientnet, resnet
from ssil.nn.any_module import called_as_declared
from ssil.nn.resnet import Backbone, Norm


class MakeBackbone(Protocol):
    """A function that creates a backbone."""

    def __call__(self, in_channels: int, norm: Norm, final_relu: bool = True, /) -> nn.Module:
        """Return a backbone for images of `in_channels`; without `final_relu` its features may be negative."""
        ...


class Identity(Backbone):
    """A backbone for features that were computed beforehand: returns vectors of `in_channels` numbers unchanged."""

    def __init__(self, in_channels: int, norm: Norm, final_relu: bool = True):
        super().__init__()
        self.width = in_channels

    def forward(self, images: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the vectors (B, C), given as such or as images (B, C, 1, 1), and no stage maps."""
        vectors = images.flatten(1)
        if vectors.shape[1] != self.width:
            raise UserError("backbone: identity is for features of 1 x 1 pixels, and these are images; name a network")
        return vectors, ()


BACKBONES: dict[str, MakeBackbone] = {
    "resnet18": resnet.resnet18,
    "resnet18_small": resnet.resnet18_small,
    "resnet8": resnet.resnet8,
    "resnet14": resnet.resnet14,
    "resnet20": resnet.resnet20,
    "resnet32": resnet.resnet32,
    "efficientnet_lite0": efficientnet.efficientnet_lite0,
    "efficientnet_lite1": efficientnet.efficientnet_lite1,
    "efficientnet_lite2": efficientnet.efficientnet_lite2,
    "identity": Identity,
}


def backbones() -> tuple[str, ...]:
    """Return the names of the built-in backbones."""
    return tuple(BACKBONES)


def find_backbone(name: str) -> MakeBackbone:
    """Return the function for a built-in name, `my_file.py:my_function`, or an entry point of `ssil.backbones`.

    A name that begins with `hf:` is the configuration of a model of the `transformers` library. A function from outside
    may return any module, and takes those of (in_channels, norm, final_relu) that it declares.
    """
    if name.startswith(plugins.HUB_PREFIX):
        from ssil.nn.hub_models import hub_backbone  # which needs a library that may be missing

        return hub_backbone(name)
    found = plugins.find("backbone", name, BACKBONES)
    return found if name in BACKBONES else partial(called_as_declared, found)
