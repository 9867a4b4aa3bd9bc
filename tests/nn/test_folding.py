"""Folded teachers compute what the network does."""

import pytest
import torch
from torch import Tensor, nn

from ssil.nn.heads import LinearHead
from ssil.nn.network import Network, Output, build, folded


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def trained(name: str, final_relu: bool = True, pixels: int = 16) -> Network:
    """A network whose batch norms are far from neutral, in their parameters and in their statistics."""
    network = build(name, LinearHead, 3, "batch", seeded(0), final_relu).grow(7, seeded(0))
    for seed, (key, parameter) in enumerate(network.named_parameters()):
        if ".norm." in key:
            parameter.data += 0.3 * torch.randn(parameter.shape, generator=seeded(seed))
    for step in range(3):
        network(1 + 2 * torch.randn(4, 3, pixels, pixels, generator=seeded(step)))
    return network


def flat(output: Output) -> list[Tensor]:
    return [output.logits, output.features, *output.stages]


@pytest.mark.parametrize(
    ("name", "final_relu", "pixels"),
    [("resnet18", True, 32), ("resnet18_small", True, 16), ("resnet14", False, 16), ("resnet32", True, 32)],
)
def test_folding_changes_nothing_but_rounding(name: str, final_relu: bool, pixels: int) -> None:
    network = trained(name, final_relu, pixels)
    images = torch.randn(5, 3, pixels, pixels, generator=seeded(9))
    for plain, fold in zip(flat(network.clone()(images)), flat(folded(network)(images)), strict=True):
        assert ((plain - fold).norm() / plain.norm()).item() < 1e-5
        torch.testing.assert_close(fold, plain, rtol=1e-4, atol=1e-4 * plain.abs().max().item())


def test_no_batch_norm_is_left_and_the_network_stays_as_it_was() -> None:
    network = trained("resnet14")
    before = {key: value.clone() for key, value in network.state_dict().items()}
    teacher = folded(network)
    assert not any(isinstance(module, nn.BatchNorm2d) for module in teacher.modules())
    assert not any(parameter.requires_grad for parameter in teacher.parameters())
    kernels = [parameter for parameter in teacher.parameters() if parameter.ndim == 4]
    assert all(kernel.is_contiguous(memory_format=torch.channels_last) for kernel in kernels)
    assert network.training
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())


def test_group_norms_stay() -> None:
    network = build("resnet14", LinearHead, 3, "group", seeded(0)).grow(7, seeded(0))
    images = torch.randn(5, 3, 16, 16, generator=seeded(9))
    assert folded(network).state_dict().keys() == network.state_dict().keys()
    assert torch.equal(folded(network)(images).logits, network.clone()(images).logits)


def test_batch_norms_that_several_devices_share_are_folded_too() -> None:
    plain = trained("resnet14")
    images = torch.randn(5, 3, 16, 16, generator=seeded(9))
    expected = folded(plain)(images).logits
    shared = folded(nn.SyncBatchNorm.convert_sync_batchnorm(plain))
    assert not any(isinstance(module, nn.SyncBatchNorm) for module in shared.modules())
    assert torch.equal(shared(images).logits, expected)
