"""The residual networks against an ordinary ResNet, written out with functional operations."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from ssil.nn.heads import LinearHead
from ssil.nn.network import Network, build
from ssil.nn.resnet import Norm

DEPTHS = {
    "resnet18": [2] * 4,
    "resnet18_small": [2] * 4,
    "resnet14": [2] * 3,
    "resnet20": [3] * 3,
    "resnet32": [5] * 3,
}


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def made(name: str, norm: Norm = "batch", in_channels: int = 3, final_relu: bool = True, classes: int = 5) -> Network:
    """A network in float64 whose norms are not at 1 and 0."""
    network = build(name, LinearHead, in_channels, norm, seeded(0), final_relu).grow(classes, seeded(1)).double()
    generator = seeded(2)
    for key, parameter in network.named_parameters():
        if ".norm." in key:
            parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator)
    return network


class Ordinary:
    """An ordinary ResNet in train mode: every block ends with its ReLU."""

    def __init__(self, network: Network, norm: Norm):
        self.weights = dict(network.backbone.named_parameters())
        self.norm = norm

    def conv_norm(self, name: str, x: Tensor, stride: int) -> Tensor:
        kernel = self.weights[f"{name}.conv.weight"]
        x = F.conv2d(x, kernel, stride=stride, padding=kernel.shape[-1] // 2)
        scale, shift = (self.weights[f"{name}.norm.{part}"][:, None, None] for part in ("weight", "bias"))
        if self.norm == "batch":
            variance, mean = torch.var_mean(x, (0, 2, 3), correction=0, keepdim=True)
            return (x - mean) / torch.sqrt(variance + 1e-5) * scale + shift
        x, shape = x.unflatten(1, (min(32, x.shape[1] // 4), -1)), x.shape
        variance, mean = torch.var_mean(x, (2, 3, 4), correction=0, keepdim=True)
        return ((x - mean) / torch.sqrt(variance + 1e-5)).reshape(shape) * scale + shift

    def block(self, name: str, x: Tensor, stride: int) -> Tensor:
        hidden = torch.relu(self.conv_norm(f"{name}.first", x, stride))
        change = self.conv_norm(f"{name}.second", hidden, 1)
        down = f"{name}.shortcut.conv.weight" in self.weights
        return change + (self.conv_norm(f"{name}.shortcut", x, stride) if down else x)

    def __call__(self, images: Tensor, depths: list[int], photographs: bool) -> tuple[Tensor, list[Tensor]]:
        """Features, and the stage maps before their ReLU."""
        if photographs:
            x = F.max_pool2d(torch.relu(self.conv_norm("stem.0", images, 2)), 3, 2, 1)
        else:
            x = torch.relu(self.conv_norm("stem", images, 1))
        maps = []
        for stage, depth in enumerate(depths):
            for block in range(depth):
                total = self.block(f"stages.{stage}.{block}", x, 2 if stage > 0 and block == 0 else 1)
                x = torch.relu(total)
            maps.append(total)
        return F.adaptive_avg_pool2d(x, 1).flatten(1), maps


@pytest.mark.parametrize(("name", "norm"), [*((name, "batch") for name in DEPTHS), ("resnet14", "group")])
def test_equals_an_ordinary_resnet_forwards_and_backwards(name: str, norm: Norm) -> None:
    network = made(name, norm)
    pixels = 32 if name == "resnet18" else 16
    images = torch.randn(3, 3, pixels, pixels, generator=seeded(3), dtype=torch.float64)
    features, stages = Ordinary(network, norm)(images, DEPTHS[name], name == "resnet18")
    output = network(images)
    torch.testing.assert_close(output.features, features)
    torch.testing.assert_close(output.stages, tuple(stages))

    parameters = list(network.backbone.parameters())
    gradients = torch.autograd.grad(output.features.sum() + sum((m**2).mean() for m in output.stages), parameters)
    ordinary = torch.autograd.grad(features.sum() + sum((m**2).mean() for m in stages), parameters)
    torch.testing.assert_close(gradients, ordinary)


@pytest.mark.parametrize(
    ("name", "classes", "count"),
    [
        ("resnet18", 1000, 11_689_512),  # as in the literature
        ("resnet18_small", 100, 11_220_132),
        ("resnet14", 10, 175_258),
        ("resnet20", 10, 272_474),
        ("resnet32", 10, 466_906),
    ],
)
def test_number_of_parameters(name: str, classes: int, count: int) -> None:
    network = build(name, LinearHead, 3, "batch", seeded(0)).grow(classes, seeded(0))
    assert sum(parameter.numel() for parameter in network.parameters()) == count


@pytest.mark.parametrize("in_channels", [1, 3])
@pytest.mark.parametrize(
    ("name", "pixels", "shapes"),
    [
        ("resnet18", 64, [(64, 16, 16), (128, 8, 8), (256, 4, 4), (512, 2, 2)]),
        ("resnet18_small", 16, [(64, 16, 16), (128, 8, 8), (256, 4, 4), (512, 2, 2)]),
        ("resnet14", 32, [(16, 32, 32), (32, 16, 16), (64, 8, 8)]),
        ("resnet20", 28, [(16, 28, 28), (32, 14, 14), (64, 7, 7)]),
        ("resnet32", 32, [(16, 32, 32), (32, 16, 16), (64, 8, 8)]),
    ],
)
def test_shapes(name: str, in_channels: int, pixels: int, shapes: list[tuple[int, ...]]) -> None:
    network = build(name, LinearHead, in_channels, "batch", seeded(0)).grow(7, seeded(0))
    output = network(torch.randn(2, in_channels, pixels, pixels, generator=seeded(1)))
    assert output.logits.shape == (2, 7)
    assert output.features.shape == (2, network.backbone.width) == (2, shapes[-1][0])
    assert [tuple(stage.shape[1:]) for stage in output.stages] == shapes


def test_the_returned_maps_are_not_changed_by_later_layers() -> None:
    network = build("resnet14", LinearHead, 3, "batch", seeded(0)).grow(5, seeded(0))
    seen: list[Tensor] = []
    for stage in network.backbone.stages:  # type: ignore[union-attr]
        stage.register_forward_hook(lambda _module, _inputs, result: seen.append(result.detach().clone()))
    output = network(torch.randn(4, 3, 32, 32, generator=seeded(1)))
    output.logits.sum().backward()
    assert all(torch.equal(before, after) for before, after in zip(seen, output.stages, strict=True))
    assert all(stage.min() < 0 for stage in output.stages)


@pytest.mark.parametrize("final_relu", [True, False])
def test_the_final_relu_is_an_option(final_relu: bool) -> None:
    network = made("resnet14", final_relu=final_relu)
    output = network(torch.randn(8, 3, 16, 16, generator=seeded(1), dtype=torch.float64))
    last = output.stages[-1].relu() if final_relu else output.stages[-1]
    torch.testing.assert_close(output.features, last.mean((2, 3)))
    assert bool((output.features < 0).any()) is not final_relu


@pytest.mark.parametrize(("name", "norm"), [("resnet14", "group"), ("resnet32", "batch")])
def test_a_sample_does_not_depend_on_its_batch(name: str, norm: Norm) -> None:
    network = build(name, LinearHead, 3, norm, seeded(0)).grow(5, seeded(0))
    images = torch.randn(9, 3, 32, 32, generator=seeded(1))
    network(images)  # moves the running statistics of the batch norms
    network.eval()
    whole = network(images).logits
    for size in (1, 2, 5):
        torch.testing.assert_close(network(images[:size]).logits, whole[:size], rtol=1e-5, atol=1e-5)
