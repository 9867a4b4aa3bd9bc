"""EfficientNet-Lite0 as the list of its blocks, whose padding and normalisation are spelt out."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

LITE0 = """
0.0 k3 s1 e1 32->16
1.0 k3 s2 e6 16->24
1.1 k3 s1 e6 24->24
2.0 k5 s2 e6 24->40
2.1 k5 s1 e6 40->40
3.0 k3 s2 e6 40->80
3.1 k3 s1 e6 80->80
3.2 k3 s1 e6 80->80
4.0 k5 s1 e6 80->112
4.1 k5 s1 e6 112->112
4.2 k5 s1 e6 112->112
5.0 k5 s2 e6 112->192
5.1 k5 s1 e6 192->192
5.2 k5 s1 e6 192->192
5.3 k5 s1 e6 192->192
6.0 k3 s1 e6 192->320
"""
"""The blocks of Lite0: stage and number, kernel, stride, expansion, channels."""


def our_name(place: str, part: str) -> tuple[str, str]:
    """Return the names of a convolution and of its norm in our network."""
    name = f"stages.{place}.{part}" if place else part
    return f"{name}.conv", f"{name}.norm"


def package_name(place: str, part: str) -> tuple[str, str]:
    """Return the same names in the file of a package, whose blocks are numbered without stages."""
    if not place:
        return {"stem": ("_conv_stem", "_bn0"), "last": ("_conv_head", "_bn1")}[part]
    number = [line.split()[0] for line in LITE0.split("\n")[1:-1]].index(place)
    norm = {"expand": "_bn0", "depthwise": "_bn1", "project": "_bn2"}[part]
    return f"_blocks.{number}._{part}_conv", f"_blocks.{number}.{norm}"


class LiteralLite0:
    """Lite0 as the list of its blocks."""

    def __init__(self, tensors: Mapping[str, Tensor], names: Callable[[str, str], tuple[str, str]] = our_name) -> None:
        self.tensors, self.names = tensors, names

    def conv_norm(self, place: str, part: str, x: Tensor, stride: int, groups: int = 1) -> Tensor:
        conv, norm = self.names(place, part)
        kernel = self.tensors[f"{conv}.weight"]
        x = F.conv2d(self.padded(x, kernel.shape[-1], stride), kernel, stride=stride, groups=groups)
        mean, variance, scale, shift = (
            self.tensors[f"{norm}.{statistic}"][:, None, None]
            for statistic in ("running_mean", "running_var", "weight", "bias")
        )
        normalised: Tensor = (x - mean) / torch.sqrt(variance + 0.001) * scale + shift
        return normalised

    def padded(self, x: Tensor, kernel: int, stride: int) -> Tensor:
        """Zeros around the map, one by one, first at the end, until the last window fits."""
        for dimension in (2, 3):
            windows = -(-x.shape[dimension] // stride)
            at_end = True
            while x.shape[dimension] < (windows - 1) * stride + kernel:
                zeros = torch.zeros_like(x.narrow(dimension, 0, 1))
                x = torch.cat([x, zeros] if at_end else [zeros, x], dimension)
                at_end = not at_end
        return x

    def __call__(self, images: Tensor) -> Tensor:
        x = self.conv_norm("", "stem", images, 2).clamp(0, 6)
        for line in LITE0.split("\n")[1:-1]:
            place, _, stride, expansion, channels = line.split()
            inputs, outputs = map(int, channels.split("->"))
            hidden = x
            if expansion != "e1":
                hidden = self.conv_norm(place, "expand", x, 1).clamp(0, 6)
            hidden = self.conv_norm(place, "depthwise", hidden, int(stride[1]), hidden.shape[1]).clamp(0, 6)
            change = self.conv_norm(place, "project", hidden, 1)
            x = x + change if inputs == outputs and stride == "s1" else change
        return self.conv_norm("", "last", x, 1)
