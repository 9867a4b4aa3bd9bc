"""Features by ONNX Runtime are those of PyTorch, or PyTorch computes them."""

import pytest
import torch
from torch import Tensor, nn

from ssil.nn.heads import LinearHead
from ssil.nn.network import Network, build
from ssil.nn.onnx_backbone import OnnxBackbone, in_onnx_runtime
from ssil.nn.resnet import Backbone, Norm

IMAGES = torch.randn(21, 3, 32, 32, generator=torch.Generator().manual_seed(1))


def network(backbone: str = "resnet14", norm: Norm = "batch") -> Network:
    """With batch norms that have seen something."""
    made = build(backbone, LinearHead, 3, norm, torch.Generator().manual_seed(0)).grow(4, torch.Generator())
    with torch.no_grad():
        made(IMAGES)
    return made.eval()


def features(network: Network, images: Tensor = IMAGES) -> Tensor:
    with torch.inference_mode():
        found: Tensor = network(images).features
    return found


@pytest.mark.parametrize(
    ("backbone", "norm"),
    [("resnet14", "batch"), ("resnet8", "group"), ("resnet18", "batch"), ("efficientnet_lite0", "batch")],
)
def test_features_are_pytorchs_for_any_number_of_images(backbone: str, norm: Norm) -> None:
    mine = network(backbone, norm)
    exported = in_onnx_runtime(mine, (3, 32, 32))
    assert exported
    assert isinstance(exported.backbone, OnnxBackbone)
    wanted = features(mine)
    for count in (1, 4, 21):  # one batch of ONNX Runtime holds 64
        found = features(exported, IMAGES[:count])
        torch.testing.assert_close(found, wanted[:count], rtol=0, atol=1e-4 * float(wanted.abs().max()))
    assert exported(IMAGES).logits.shape == (21, 0)


def test_batches_of_one_image_and_other_memory_formats() -> None:
    mine = network()
    exported = in_onnx_runtime(mine, (3, 300, 300))  # more pixels than a batch of ONNX Runtime may have
    assert exported
    images = torch.randn(3, 3, 300, 300, generator=torch.Generator().manual_seed(2))
    found = features(exported, images.to(memory_format=torch.channels_last))
    torch.testing.assert_close(found, features(mine, images), rtol=1e-4, atol=1e-4)


def test_results_dont_depend_on_the_number_of_threads() -> None:
    mine, before, found = network("efficientnet_lite0"), torch.get_num_threads(), list[Tensor]()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            exported = in_onnx_runtime(mine, (3, 32, 32))
            assert exported
            found.append(features(exported))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


class Odd(Backbone):
    """Four averages, and something that a graph can't have."""

    width = 4

    def __init__(self, kind: str):
        super().__init__()
        self.kind, self.linear = kind, nn.Linear(3, 4)

    def forward(self, images: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        found: Tensor = self.linear(images.mean((2, 3)))
        if self.kind == "branch" and found.mean() > 0:
            found = -found
        if self.kind == "number":
            found = found * float(found.abs().max())
        if self.kind == "size":
            found = found + torch.arange(int(images.shape[0]))[:, None]
        if self.kind == "noise":
            found = found + torch.randn_like(found)
        return found, ()


@pytest.mark.parametrize("kind", ["branch", "number", "size", "noise"])
def test_what_is_no_graph_stays_in_pytorch(kind: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert in_onnx_runtime(Network(Odd("none"), LinearHead(4)), (3, 8, 8))
    assert in_onnx_runtime(Network(Odd(kind), LinearHead(4)), (3, 8, 8)) is None
    assert capfd.readouterr() == ("", "")
