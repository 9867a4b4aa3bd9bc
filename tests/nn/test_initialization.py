"""Initial weights: their statistics, and that they come from one generator only."""

from math import sqrt

import pytest
import torch
from torch import nn

from ssil.core.errors import UserError
from ssil.nn.backbones import backbones
from ssil.nn.heads import LinearHead
from ssil.nn.initialization import initialise
from ssil.nn.network import build
from ssil.nn.resnet import Norm


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("norm", ["batch", "group"])
@pytest.mark.parametrize("name", backbones())
def test_same_generator_same_weights_and_the_global_one_is_left_alone(name: str, norm: Norm) -> None:
    before = torch.get_rng_state()
    first, second, other = (build(name, LinearHead, 3, norm, seeded(s)).grow(4, seeded(s)) for s in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(value, second.state_dict()[key]) for key, value in first.state_dict().items())
    assert not torch.equal(first.head.weight, other.head.weight)
    kernels = [key for key in first.state_dict() if key.endswith("conv.weight")]
    assert not any(torch.equal(first.state_dict()[key], other.state_dict()[key]) for key in kernels)


@pytest.mark.parametrize("norm", ["batch", "group"])
def test_kaiming_convolutions_and_neutral_norms(norm: Norm) -> None:
    backbone = build("resnet18", LinearHead, 3, norm, seeded(0)).backbone
    for name, module in backbone.named_modules():
        if isinstance(module, nn.Conv2d):
            fan_out = module.out_channels * module.kernel_size[0] ** 2
            spread = 4 / sqrt(2 * module.weight.numel())
            assert module.weight.std().item() * sqrt(fan_out / 2) == pytest.approx(1, abs=spread), name
            assert module.weight.mean().item() * sqrt(fan_out / 2) == pytest.approx(0, abs=2 * spread), name
    values = {"weight": 1, "bias": 0, "running_mean": 0, "running_var": 1, "num_batches_tracked": 0}
    norms = {key: value for key, value in backbone.state_dict().items() if ".norm." in key}
    assert len(norms) == 20 * (5 if norm == "batch" else 2)
    assert all(bool((value == values[key.rpartition(".")[2]]).all()) for key, value in norms.items())


def test_weights_depend_on_nothing_but_the_generator() -> None:
    layers = nn.Sequential(nn.Linear(400, 100), nn.LayerNorm(100), nn.Conv2d(1, 8, 3))
    initialise(layers, seeded(0))
    once = {key: value.clone() for key, value in layers.state_dict().items()}
    with torch.no_grad():
        for parameter in layers.parameters():
            parameter.fill_(torch.nan)
    initialise(layers, seeded(0))
    assert all(torch.equal(value, once[key]) for key, value in layers.state_dict().items())
    assert once["0.weight"].abs().max().item() == pytest.approx(1 / sqrt(400), rel=0.01)
    assert once["0.weight"].std().item() == pytest.approx(1 / sqrt(3 * 400), rel=0.02)
    assert once["0.bias"].std().item() == pytest.approx(1 / sqrt(3 * 400), rel=0.2)
    assert not once["2.bias"].any()


class Scale(nn.Module):
    """A layer of which the package knows nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.empty(3))


class OwnScale(Scale):
    """The same, that sets itself."""

    def initialise(self, generator: torch.Generator) -> None:
        nn.init.normal_(self.factor, generator=generator)


def test_an_unknown_layer_is_refused_unless_it_sets_itself() -> None:
    with pytest.raises(UserError, match=r"weights of Scale; give it a method initialise\(generator\)"):
        initialise(nn.Sequential(Scale()), seeded(0))
    own = OwnScale()
    initialise(nn.Sequential(own), seeded(0))
    assert torch.equal(own.factor, torch.randn(3, generator=seeded(0)))
