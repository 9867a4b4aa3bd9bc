"""What the backbones are made of."""

from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

Norm = Literal["batch", "group"]


class Backbone(nn.Module):
    """Images (B, C, H, W) to (features (B, width), each stage's map before its ReLU)."""

    width: int

    def forward(self, images: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Features and stage maps."""
        raise NotImplementedError


class ConvNorm(nn.Module):
    """A convolution without bias, then its norm: the unit that `folded` folds."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, norm: Norm):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(outputs) if norm == "batch" else nn.GroupNorm(groups(outputs), outputs)

    def forward(self, x: Tensor) -> Tensor:
        """The normalised map."""
        normalised: Tensor = self.norm(self.conv(x))
        return normalised


def groups(channels: int) -> int:
    """Groups of at least four channels, and at most 32 groups.

    >>> [groups(channels) for channels in (16, 32, 64, 512)]
    [4, 8, 16, 32]
    """
    return min(32, channels // 4)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut. The ReLU comes at the input, so that sums leave the block without theirs."""

    def __init__(self, inputs: int, outputs: int, stride: int, norm: Norm):
        super().__init__()
        self.first = ConvNorm(inputs, outputs, 3, stride, norm)
        self.second = ConvNorm(outputs, outputs, 3, 1, norm)
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else ConvNorm(inputs, outputs, 1, stride, norm)

    def forward(self, x: Tensor) -> Tensor:
        """The sum of both paths, for a map x before its ReLU."""
        x = F.relu(x)  # never in place: x may be a stage's map, which the caller keeps
        hidden = F.relu(self.first(x), inplace=True)
        total: Tensor = self.second(hidden).add_(self.shortcut(x))
        return total
