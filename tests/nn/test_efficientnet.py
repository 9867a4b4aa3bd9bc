"""EfficientNet-Lite against a literal network, whose blocks are listed one by one and whose padding is spelt out."""

import pytest
import torch

from literal_lite0 import LiteralLite0
from ssil.core.errors import UserError
from ssil.nn.heads import LinearHead
from ssil.nn.network import Network, build, folded
from ssil.nn.pretrained import Pretrained, load_backbone


def made(name: str = "efficientnet_lite0", final_relu: bool = True) -> Network:
    """A network in float64 and eval mode, whose norms have statistics, scales and shifts of their own."""
    network = build(name, LinearHead, 3, "batch", torch.Generator().manual_seed(0), final_relu).double().eval()
    generator = torch.Generator().manual_seed(1)
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            for values, centre in ((module.running_mean, 0.0), (module.running_var, 1.0), (module.bias, 0.5)):
                assert values is not None
                values.data = centre + 0.3 * torch.rand(len(values), generator=generator).double()
    return network


@pytest.mark.parametrize("size", [64, 45], ids=["even", "odd at every stage"])
def test_it_computes_what_the_list_of_its_blocks_says(size: int) -> None:
    network = made()
    images = torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(2)).double()
    features, stages = network.backbone(images)
    last = LiteralLite0(network.backbone.state_dict())(images)
    torch.testing.assert_close(stages[-1], last)
    torch.testing.assert_close(features, last.clamp(0, 6).mean((2, 3)))


def test_without_its_last_relu_features_may_be_negative_and_above_six() -> None:
    network = made(final_relu=False)
    images = 10 * torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(2)).double()
    features, stages = network.backbone(images)
    torch.testing.assert_close(features, stages[-1].mean((2, 3)))
    assert features.min() < 0


def test_folding_its_norms_changes_nothing_but_rounding() -> None:
    network = made()
    images = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(2)).double()
    copy = folded(network)
    assert not any(isinstance(module, torch.nn.BatchNorm2d) for module in copy.modules())
    torch.testing.assert_close(copy(images).features, network(images).features)


@pytest.mark.parametrize(
    ("name", "parameters", "widths", "tensors"),
    [
        ("efficientnet_lite0", 3_371_008, (16, 24, 40, 80, 112, 192, 320, 1280), 294),
        ("efficientnet_lite1", 4_135_680, (16, 24, 40, 80, 112, 192, 320, 1280), 384),
        ("efficientnet_lite2", 4_811_072, (16, 24, 48, 88, 120, 208, 352, 1280), 384),
    ],
)
def test_its_sizes(name: str, parameters: int, widths: tuple[int, ...], tensors: int) -> None:
    backbone = made(name).backbone
    _, stages = backbone(torch.zeros(1, 3, 64, 64).double())
    assert backbone.width == 1280
    assert tuple(stage.shape[1] for stage in stages) == widths
    assert [stage.shape[2] for stage in stages] == [32, 16, 8, 4, 4, 2, 2, 2]
    assert len(backbone.state_dict()) == tensors
    assert sum(parameter.numel() for parameter in backbone.parameters()) == parameters


def test_it_has_gradients_everywhere() -> None:
    network = made().train()
    features, stages = network.backbone(torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(2)).double())
    (features.sum() + sum(stage.square().sum() for stage in stages)).backward()
    assert all(parameter.grad is not None for parameter in network.backbone.parameters())


def test_weights_with_batch_norm_are_not_for_a_network_with_group_norm() -> None:
    backbone = build("efficientnet_lite0", LinearHead, 3, "group", torch.Generator()).backbone
    assert backbone(torch.zeros(1, 3, 32, 32))[0].shape == (1, 1280)
    with pytest.raises(UserError, match="init: f is of a network with batch norm; leave out --norm group"):
        load_backbone(backbone, Pretrained("f", made().backbone.state_dict()))
