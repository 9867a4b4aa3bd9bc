"""Networks: building, growing, cloning, restoring, folding; backbones from outside."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from ssil.core.errors import UserError
from ssil.core.plugins import load_object
from ssil.nn.backbones import backbones, find_backbone
from ssil.nn.heads import LinearHead
from ssil.nn.network import Network, Output, build, folded

IMAGES = torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(5))


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def made(seed: int = 0, classes: int = 6) -> Network:
    return build("resnet14", LinearHead, 3, "batch", seeded(seed)).grow(classes, seeded(seed))


def channels_last(network: Network) -> bool:
    kernels = [parameter for parameter in network.parameters() if parameter.ndim == 4]
    return all(kernel.is_contiguous(memory_format=torch.channels_last) for kernel in kernels)


def test_growing_gives_a_trainable_copy_and_keeps_the_old_logits() -> None:
    teacher = made().clone()
    student = teacher.grow(3, seeded(1))
    assert student.training
    assert all(parameter.requires_grad for parameter in student.parameters())
    old, new = teacher(IMAGES), student.eval()(IMAGES)
    torch.testing.assert_close(new.logits[:, :6], old.logits)
    assert torch.equal(new.features, old.features)
    assert (old.logits.shape[1], new.logits.shape[1]) == (6, 9)


def test_training_a_student_leaves_its_teacher_bit_for_bit() -> None:
    teacher = made().clone()
    before = teacher(IMAGES).logits
    student = teacher.grow(0, seeded(1))
    optimiser = torch.optim.SGD(student.parameters(), lr=0.1)
    student(IMAGES).logits.square().mean().backward()
    optimiser.step()
    assert torch.equal(teacher(IMAGES).logits, before)
    assert not torch.equal(student.eval()(IMAGES).logits, before)


def test_a_clone_is_frozen() -> None:
    network = made()
    clone = network.clone()
    assert not clone.training
    assert not any(parameter.requires_grad for parameter in clone.parameters())
    assert network.training
    assert all(parameter.requires_grad for parameter in network.parameters())


def test_weights_can_be_loaded_into_a_rebuilt_network() -> None:
    network, rebuilt = made(0), made(1)
    network(IMAGES)
    saved = {key: value.contiguous() for key, value in network.state_dict().items()}
    rebuilt.load_state_dict(saved)
    assert torch.equal(rebuilt.eval()(IMAGES).logits, network.eval()(IMAGES).logits)
    assert channels_last(rebuilt)


def test_every_copy_is_channels_last() -> None:
    network = made()
    assert all(channels_last(copy) for copy in (network, network.clone(), network.grow(2, seeded(0))))
    assert network(IMAGES).stages[0].is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("shape", [(2, 12), (2, 12, 1, 1)])
def test_identity_hands_vectors_on(shape: tuple[int, ...]) -> None:
    vectors = torch.randn(shape, generator=seeded(0))
    output = build("identity", LinearHead, 12, "batch", seeded(0)).grow(3, seeded(0))(vectors)
    assert torch.equal(output.features, vectors.reshape(2, 12))
    assert output.stages == ()
    assert output.logits.shape == (2, 3)


def test_a_misspelt_backbone_gets_a_guess() -> None:
    assert "resnet32" in backbones()
    with pytest.raises(UserError, match=r"backbone: unknown name 'resnet_32', did you mean 'resnet32'"):
        find_backbone("resnet_32")


OWN = """
import torch
from ssil import Backbone, ConvNorm

COLOURS = torch.ones(3)

class Tiny(Backbone):
    width = 5

    def __init__(self, in_channels, norm):
        super().__init__()
        self.layer = ConvNorm(in_channels, 5, 3, 1, norm)

    def forward(self, images):
        last = self.layer(images)
        return last.mean((2, 3)), (last,)

def tiny(in_channels, norm, final_relu=True):
    return Tiny(in_channels, norm)

def wrong(in_channels, norm, final_relu=True):
    return [torch.nn.Linear(3, 4)]
"""


def test_a_backbone_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN)
    network = build(f"{file}:tiny", LinearHead, 3, "batch", seeded(0)).grow(2, seeded(0))
    assert network(IMAGES).logits.shape == (4, 2)
    assert load_object(f"{file}:COLOURS").device.type == "cpu"
    with pytest.raises(UserError, match=r"wrong made a list; let it return an ssil.Backbone or nn.Module"):
        build(f"{file}:wrong", LinearHead, 3, "batch", seeded(0))


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
