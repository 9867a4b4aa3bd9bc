"""Strided 1 x 1 convolutions of few channels, computed in a way that does not crash.

On CPUs with AVX-512, oneDNN (in PyTorch 2.13.0) writes beyond its memory in the backward pass of a 1 x 1 convolution
with a stride, 3 to 15 input channels, channels-last images and maps of 64 x 64, 112 x 112 or 224 x 224 (those of
32 x 32 and less were right): the process ends by SIGSEGV.
A stride of a 1 x 1 convolution only leaves pixels out, which can be done before it.
"""

from torch import Tensor, nn
from torch.nn.functional import conv2d

SAFE_CHANNELS = 16
"""From this number of input channels on, oneDNN computes as it should."""


class SubsampledConv2d(nn.Conv2d):
    """A 1 x 1 convolution that leaves the pixels out that its stride passes over, and computes the rest."""

    def _conv_forward(self, images: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        down, right = self.stride
        return conv2d(images[:, :, ::down, ::right], weight, bias)


def replace_unsafe_convolutions(module: nn.Module) -> None:
    """Let the module's convolutions that may crash be of the class `SubsampledConv2d`; parameters and names stay."""
    for convolution in module.modules():
        if type(convolution) is nn.Conv2d and _is_unsafe(convolution):
            convolution.__class__ = SubsampledConv2d


def _is_unsafe(convolution: nn.Conv2d) -> bool:
    one_pixel = convolution.kernel_size == (1, 1) and convolution.padding in ((0, 0), "valid")
    few = convolution.groups == 1 and convolution.in_channels < SAFE_CHANNELS
    return one_pixel and few and convolution.stride != (1, 1)
