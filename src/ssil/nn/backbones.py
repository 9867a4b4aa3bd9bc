"""The backbones by name."""

from typing import Protocol

from torch import Tensor

from ssil.core import plugins
from ssil.nn import resnet
from ssil.nn.resnet import Backbone, Norm


class MakeBackbone(Protocol):
    """What makes a backbone: a function of this package, of an own file, or of an installed package."""

    def __call__(self, in_channels: int, norm: Norm, final_relu: bool = True, /) -> Backbone:
        """A backbone for images of so many channels; without `final_relu` its features may be negative."""
        ...


class Identity(Backbone):
    """For features computed beforehand: vectors of `in_channels` numbers, handed on as they are."""

    def __init__(self, in_channels: int, norm: Norm, final_relu: bool = True):
        super().__init__()
        self.width = in_channels

    def forward(self, images: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The vectors, whether they come as (B, C) or as images (B, C, 1, 1), and no stage maps."""
        return images.flatten(1), ()


BACKBONES: dict[str, MakeBackbone] = {
    "resnet18": resnet.resnet18,
    "resnet18_small": resnet.resnet18_small,
    "resnet8": resnet.resnet8,
    "resnet14": resnet.resnet14,
    "resnet20": resnet.resnet20,
    "resnet32": resnet.resnet32,
    "identity": Identity,
}


def backbones() -> tuple[str, ...]:
    """The names of the built-in backbones."""
    return tuple(BACKBONES)


def find_backbone(name: str) -> MakeBackbone:
    """The maker of a backbone: a built-in name, `my_file.py:my_function`, or an entry point of `ssil.backbones`."""
    return plugins.find("backbone", name, BACKBONES)
