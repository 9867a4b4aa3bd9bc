"""Networks: building, growing, cloning, restoring; backbones from outside."""

from pathlib import Path

import pytest
import torch

from ssil.core.errors import UserError
from ssil.core.plugins import load_object
from ssil.nn.backbones import backbones, find_backbone
from ssil.nn.heads import LinearHead
from ssil.nn.network import Network, build

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
    return torch.nn.Linear(3, 4)
"""


def test_a_backbone_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN)
    network = build(f"{file}:tiny", LinearHead, 3, "batch", seeded(0)).grow(2, seeded(0))
    assert network(IMAGES).logits.shape == (4, 2)
    assert load_object(f"{file}:COLOURS").device.type == "cpu"
    with pytest.raises(UserError, match=r"wrong made a Linear; let it return an ssil.Backbone"):
        build(f"{file}:wrong", LinearHead, 3, "batch", seeded(0))
