"""Residual networks (He et al., CVPR 2016) that also return the map of each stage before its last ReLU.

That ReLU is applied at the input of the next stage, or before pooling: numerically this is an ordinary ResNet.
"""

from copy import deepcopy
from itertools import pairwise
from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

from ssil.core.errors import UserError

Norm = Literal["batch", "group"]


class Backbone(nn.Module):
    """Base class of backbones: maps images (B, C, H, W) to features (B, width) and stage maps."""

    width: int

    def forward(self, images: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the features, and the map of each stage before its ReLU."""
        raise NotImplementedError

    def split(self) -> tuple[nn.Module, "Backbone"]:
        """Return all stages but the last, and a backbone that computes the features from their map.

        The first part returns its last map, and the maps of its stages. Raise UserError if the backbone has no stages.
        """
        name = type(self).__name__
        raise UserError(f"backbone: the last stage of {name} can't be told from the others; give a resnet, for example")


class ConvNorm(nn.Module):
    """A convolution without bias and its normalisation, which `network.folded` can fold into one convolution."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, norm: Norm):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(outputs) if norm == "batch" else nn.GroupNorm(groups(outputs), outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalised map."""
        normalised: Tensor = self.norm(self.conv(x))
        return normalised


def groups(channels: int) -> int:
    """Return the number of groups for group norm: at most 32, of at least four channels each.

    >>> [groups(channels) for channels in (16, 32, 64, 512)]
    [4, 8, 16, 32]
    """
    return min(32, channels // 4)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut. The ReLU is at the input: the sum leaves the block without one."""

    def __init__(self, inputs: int, outputs: int, stride: int, norm: Norm):
        super().__init__()
        self.first = ConvNorm(inputs, outputs, 3, stride, norm)
        self.second = ConvNorm(outputs, outputs, 3, 1, norm)
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else ConvNorm(inputs, outputs, 1, stride, norm)

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum of both paths for a map `x` before its ReLU."""
        x = F.relu(x)  # not in place: x may be a stage map, which the caller keeps
        hidden = F.relu(self.first(x), inplace=True)
        total: Tensor = self.second(hidden).add_(self.shortcut(x))
        return total


class ResNet(Backbone):
    """A stem, stages of basic blocks, global average pooling."""

    def __init__(self, stem: nn.Module, widths: tuple[int, ...], depth: int, norm: Norm, final_relu: bool):
        super().__init__()
        self.width = widths[-1]
        self.final_relu = final_relu
        self.stem = stem
        self.stages = nn.ModuleList(
            _stage(inputs, outputs, depth, norm) for inputs, outputs in pairwise((widths[0], *widths))
        )

    def forward(self, images: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the features (B, width), and the map of each stage before its ReLU."""
        last, maps = _through(self.stem, self.stages, images)
        return (F.relu(last) if self.final_relu else last).mean((2, 3)), maps

    def split(self) -> tuple[nn.Module, Backbone]:
        """Return all stages but the last, and the last stage with the pooling, whose stem does nothing."""
        if len(self.stages) < 2:
            return super().split()
        last = deepcopy(self)
        last.stem, last.stages = nn.Identity(), self.stages[-1:]
        return EarlyStages(self.stem, self.stages[:-1]), last


class EarlyStages(nn.Module):
    """A stem and the stages after it, without pooling."""

    def __init__(self, stem: nn.Module, stages: nn.ModuleList):
        super().__init__()
        self.stem = stem
        self.stages = stages

    def forward(self, images: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the last map before its ReLU, and the map of each stage."""
        return _through(self.stem, self.stages, images)


def _through(stem: nn.Module, stages: nn.ModuleList, images: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return the last map, and the map of each stage, all before their ReLU."""
    maps: list[Tensor] = [stem(images)]
    for stage in stages:
        maps.append(stage(maps[-1]))
    return maps[-1], tuple(maps[1:])


def _stage(inputs: int, outputs: int, depth: int, norm: Norm) -> nn.Sequential:
    """Return `depth` blocks; the first one halves the resolution if the number of channels grows."""
    first = BasicBlock(inputs, outputs, 1 if inputs == outputs else 2, norm)
    return nn.Sequential(first, *(BasicBlock(outputs, outputs, 1, norm) for _ in range(depth - 1)))


def resnet18(in_channels: int, norm: Norm, final_relu: bool = True) -> ResNet:
    """ResNet-18 for photographs of about 224 pixels."""
    # The stem's ReLU comes after the max-pooling, with which it commutes: a quarter of the computation.
    stem = nn.Sequential(ConvNorm(in_channels, 64, 7, 2, norm), nn.MaxPool2d(3, stride=2, padding=1))
    return ResNet(stem, (64, 128, 256, 512), 2, norm, final_relu)


def resnet18_small(in_channels: int, norm: Norm, final_relu: bool = True) -> ResNet:
    """ResNet-18 for images of 32 to 64 pixels: a 3x3 stem and no max-pooling."""
    return ResNet(ConvNorm(in_channels, 64, 3, 1, norm), (64, 128, 256, 512), 2, norm, final_relu)


def _slim(in_channels: int, norm: Norm, final_relu: bool, depth: int) -> ResNet:
    return ResNet(ConvNorm(in_channels, 16, 3, 1, norm), (16, 32, 64), depth, norm, final_relu)


def resnet8(in_channels: int, norm: Norm, final_relu: bool = True) -> ResNet:
    """Three stages of one block, 16/32/64 channels, for images of about 32 pixels."""
    return _slim(in_channels, norm, final_relu, depth=1)


def resnet14(in_channels: int, norm: Norm, final_relu: bool = True) -> ResNet:
    """Three stages of two blocks, 16/32/64 channels, for images of about 32 pixels."""
    return _slim(in_channels, norm, final_relu, depth=2)


def resnet20(in_channels: int, norm: Norm, final_relu: bool = True) -> ResNet:
    """Three stages of three blocks, 16/32/64 channels, for images of about 32 pixels."""
    return _slim(in_channels, norm, final_relu, depth=3)


def resnet32(in_channels: int, norm: Norm, final_relu: bool = True) -> ResNet:
    """Three stages of five blocks, 16/32/64 channels, for images of about 32 pixels."""
    return _slim(in_channels, norm, final_relu, depth=5)
