"""EfficientNet-Lite (Tan & Le, ICML 2019; the variant for mobile devices without squeeze-and-excitation).

A stem, seven stages of inverted residual blocks, a last 1x1 convolution, global average pooling. Every activation is a
ReLU6. Convolutions are padded as in TensorFlow, where the published weights were trained: of an odd number of pixels,
one more is added at the right and at the bottom.
"""

from collections.abc import Iterator
from functools import partial
from math import ceil, gcd
from typing import NamedTuple

from torch import Tensor, nn
from torch.nn import functional as F

from ssil.nn.resnet import Backbone, ConvNorm, EarlyStages, Norm

STEM_WIDTH, LAST_WIDTH = 32, 1280
"""Channels of the stem and of the last map, in every size of the network."""
NORM_EPSILON = 1e-3


class StageShape(NamedTuple):
    """One row of the table of stages: the kernel, the stride of the first block, expansion, channels, blocks."""

    kernel: int
    stride: int
    expansion: int
    width: int
    depth: int


STAGES = (
    StageShape(3, 1, 1, 16, 1),
    StageShape(3, 2, 6, 24, 2),
    StageShape(5, 2, 6, 40, 2),
    StageShape(3, 2, 6, 80, 3),
    StageShape(5, 1, 6, 112, 3),
    StageShape(5, 2, 6, 192, 4),
    StageShape(3, 1, 6, 320, 1),
)
"""The stages of Lite0."""


class SameConv(nn.Conv2d):
    """A convolution padded so that its output has the size of the input, divided by the stride and rounded up."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the convolved map."""
        height, width = (_padding(size, self.kernel_size[0], self.stride[0]) for size in input.shape[2:])
        return super().forward(F.pad(input, (*width, *height)))


def _padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Return the pixels to add before and after a line of `size` pixels.

    >>> _padding(224, 3, 2), _padding(15, 5, 2)
    ((0, 1), (2, 2))
    """
    total = max(0, (ceil(size / stride) - 1) * stride + kernel - size)
    return total // 2, total - total // 2


class LiteConvNorm(ConvNorm):
    """A convolution and its normalisation; with `groups` equal to the channels, depthwise."""

    def __init__(self, inputs: int, outputs: int, norm: Norm, kernel: int = 1, stride: int = 1, groups: int = 1):
        nn.Module.__init__(self)
        kind, padding = (nn.Conv2d, kernel // 2) if stride == 1 else (SameConv, 0)
        self.conv = kind(inputs, outputs, kernel, stride, padding, groups=groups, bias=False)
        batch = norm == "batch"
        self.norm = nn.BatchNorm2d(outputs, NORM_EPSILON) if batch else nn.GroupNorm(gcd(32, outputs), outputs)


class InvertedResidual(nn.Module):
    """Expand the channels, filter each of them, project them; added to the input if the shape is the same."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int, norm: Norm):
        super().__init__()
        hidden = inputs * expansion
        self.expand = LiteConvNorm(inputs, hidden, norm) if expansion > 1 else None
        self.depthwise = LiteConvNorm(hidden, hidden, norm, kernel, stride, groups=hidden)
        self.project = LiteConvNorm(hidden, outputs, norm)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's map, which has no activation."""
        hidden = F.relu6(self.expand(x), inplace=True) if self.expand else x
        hidden = F.relu6(self.depthwise(hidden), inplace=True)
        projected: Tensor = self.project(hidden)
        return projected.add_(x) if self.residual else projected


class EfficientNetLite(Backbone):
    """EfficientNet-Lite, its number of channels and of blocks scaled by two factors."""

    def __init__(self, in_channels: int, norm: Norm, final_relu: bool, width: float, depth: float):
        super().__init__()
        self.width = LAST_WIDTH
        self.final_relu = final_relu
        shapes = [*_scaled(width, depth)]
        self.stem = LiteConvNorm(in_channels, STEM_WIDTH, norm, 3, 2)
        inputs = (STEM_WIDTH, *(shape.width for shape in shapes))
        self.stages = nn.ModuleList(map(partial(_stage, norm), inputs, shapes))
        self.last = LiteConvNorm(inputs[-1], LAST_WIDTH, norm)

    def forward(self, images: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the features (B, 1280), and the maps of the seven stages and of the last convolution before ReLU6."""
        maps = [F.relu6(self.stem(images), inplace=True)]
        for stage in self.stages:
            maps.append(stage(maps[-1]))
        maps.append(self.last(maps[-1]))
        return _pooled(maps[-1], self.final_relu), tuple(maps[1:])

    def split(self) -> tuple[nn.Module, Backbone]:
        """Return all stages but the last, and the last stage with the last convolution and the pooling."""
        stem = nn.Sequential(self.stem, nn.ReLU6(inplace=True))
        return EarlyStages(stem, self.stages[:-1]), LastStage(self.stages[-1], self.last, self.final_relu)


class LastStage(Backbone):
    """The last stage of an EfficientNet-Lite, its last convolution and the pooling."""

    def __init__(self, stage: nn.Module, last: nn.Module, final_relu: bool):
        super().__init__()
        self.width = LAST_WIDTH
        self.stage = stage
        self.last = last
        self.final_relu = final_relu

    def forward(self, images: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the features for a map of the stage before, and the maps of the stage and the last convolution."""
        first = self.stage(images)
        last = self.last(first)
        return _pooled(last, self.final_relu), (first, last)


def _pooled(last: Tensor, relu: bool) -> Tensor:
    return (F.relu6(last) if relu else last).mean((2, 3))


def _stage(norm: Norm, inputs: int, shape: StageShape) -> nn.Sequential:
    kernel, stride, expansion, width, depth = shape
    first = InvertedResidual(inputs, width, kernel, stride, expansion, norm)
    return nn.Sequential(first, *(InvertedResidual(width, width, kernel, 1, expansion, norm) for _ in range(depth - 1)))


def _scaled(width: float, depth: float) -> Iterator[StageShape]:
    """Yield the stages of a larger network; the first and the last stage keep their single block."""
    for shape in STAGES:
        blocks = ceil(depth * shape.depth) if shape.depth > 1 else 1
        yield shape._replace(width=_rounded(width * shape.width), depth=blocks)


def _rounded(channels: float) -> int:
    """Return the nearest multiple of 8 that is at least nine tenths of `channels`.

    >>> [_rounded(1.1 * channels) for channels in (16, 24, 40, 112, 192)]
    [16, 24, 48, 120, 208]
    """
    nearest = max(8, int(channels + 4) // 8 * 8)
    return nearest if nearest >= 0.9 * channels else nearest + 8


def efficientnet_lite0(in_channels: int, norm: Norm, final_relu: bool = True) -> EfficientNetLite:
    """EfficientNet-Lite0, for photographs of about 224 pixels."""
    return EfficientNetLite(in_channels, norm, final_relu, 1.0, 1.0)


def efficientnet_lite1(in_channels: int, norm: Norm, final_relu: bool = True) -> EfficientNetLite:
    """EfficientNet-Lite1, for photographs of about 240 pixels."""
    return EfficientNetLite(in_channels, norm, final_relu, 1.0, 1.1)


def efficientnet_lite2(in_channels: int, norm: Norm, final_relu: bool = True) -> EfficientNetLite:
    """EfficientNet-Lite2, for photographs of about 260 pixels."""
    return EfficientNetLite(in_channels, norm, final_relu, 1.1, 1.2)
