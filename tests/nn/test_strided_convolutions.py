"""1 x 1 convolutions with a stride: the same numbers, without a crash."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from ssil.nn.heads import LinearHead
from ssil.nn.network import build
from ssil.nn.strided_convolutions import SubsampledConv2d, replace_unsafe_convolutions
from tiny_runs import __file__ as tiny

CRASH = """
import torch
from ssil.nn.heads import LinearHead
from ssil.nn.network import build
torch.set_num_threads(1)
network = build("{backbone}:backbone", LinearHead, 3, "batch", torch.Generator()).grow(2, torch.Generator())
images = torch.rand(4, 3, 64, 64).to(memory_format=torch.channels_last)
for _ in range(3):
    network(images).logits.sum().backward()
print(all(parameter.grad.isfinite().all() for parameter in network.parameters()))
"""


def test_a_small_network_learns_large_images_without_a_crash() -> None:
    """oneDNN's own backward pass ends such a process by SIGSEGV, on a CPU with AVX-512."""
    script = CRASH.format(backbone=tiny)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr[-500:]


@pytest.mark.parametrize("size", [7, 8, 33])
@pytest.mark.parametrize("stride", [2, 3, (1, 2)])
@pytest.mark.parametrize("bias", [False, True])
def test_the_replacement_computes_the_same(size: int, stride: int | tuple[int, int], bias: bool) -> None:
    torch.manual_seed(0)
    plain = nn.Conv2d(8, 5, 1, stride, bias=bias).double()
    other = nn.Sequential(nn.Conv2d(8, 5, 1, stride, bias=bias)).double()
    other[0].load_state_dict(plain.state_dict())
    replace_unsafe_convolutions(other)
    assert type(other[0]) is SubsampledConv2d
    images = torch.randn(2, 8, size, size, dtype=torch.double)
    one, two = images.clone().requires_grad_(True), images.clone().requires_grad_(True)
    expected, found = plain(one), other(two)
    torch.testing.assert_close(found, expected)
    for output in (expected, found):
        output.square().sum().backward()
    torch.testing.assert_close(two.grad, one.grad)
    assert plain.weight.grad is not None
    torch.testing.assert_close(other[0].weight.grad, plain.weight.grad)


@pytest.mark.parametrize(
    "convolution",
    [
        nn.Conv2d(16, 8, 1, 2),
        nn.Conv2d(8, 8, 1, 1),
        nn.Conv2d(8, 8, 3, 2, padding=1),
        nn.Conv2d(8, 8, 1, 2, padding=1),
        nn.Conv2d(8, 8, 1, 2, groups=8),
    ],
)
def test_other_convolutions_stay(convolution: nn.Conv2d) -> None:
    replace_unsafe_convolutions(nn.Sequential(convolution))
    assert type(convolution) is nn.Conv2d


@pytest.mark.parametrize("backbone", ["resnet8", "resnet18", "resnet18_small", "resnet32"])
def test_no_built_in_backbone_is_changed(backbone: str) -> None:
    network = build(backbone, LinearHead, 3, "batch", torch.Generator())
    assert not [module for module in network.modules() if isinstance(module, SubsampledConv2d)]
