"""What a backbone's constructor sets either holds or is refused."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from ssil.core.errors import UserError
from ssil.nn.backbones import backbones, find_backbone
from ssil.nn.construction import constructed, refuse_unset
from ssil.nn.heads import LinearHead
from ssil.nn.initialization import initialise
from ssil.nn.network import build
from ssil.nn.resnet import Backbone


class Small(Backbone):
    """A convolution and a batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.width = 4
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)

    def forward(self, images: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        return self.norm(self.conv(images)).mean((2, 3)), ()


def loads_a_state(body: Small) -> None:
    body.load_state_dict({**Small().state_dict(), "conv.bias": torch.arange(4.0)})


def assigns_a_state(body: Small) -> None:
    with torch.device("cpu"):
        body.load_state_dict(Small().state_dict(), assign=True)


def copies(body: Small) -> None:
    with torch.no_grad():
        body.conv.weight.copy_(torch.ones(4, 3, 3, 3))


def writes_data(body: Small) -> None:
    body.conv.weight.data.normal_(0, 0.1)


def replaces(body: Small) -> None:
    body.conv.weight = nn.Parameter(torch.ones(4, 3, 3, 3, device="cpu"))


def initialises(body: Small) -> None:
    nn.init.zeros_(body.norm.weight)


@pytest.mark.filterwarnings("ignore:.*copying from a non-meta parameter")
@pytest.mark.parametrize("change", [loads_a_state, assigns_a_state, copies, writes_data, replaces, initialises])
def test_weights_that_a_constructor_sets_are_refused(change: Callable[[Small], None]) -> None:
    def make() -> Small:
        body = Small()
        change(body)
        return body

    reason = r"backbone: small sets (conv|norm)\.\w+ in its constructor, .*; set it in a method initialise\(generator\)"
    with pytest.raises(UserError, match=reason):
        constructed(make, "small")


class Loaded(Small):
    """The same with weights of its own, in the way that the message names."""

    def __init__(self) -> None:
        super().__init__()
        initialises(self)

    def initialise(self, generator: torch.Generator) -> None:
        self.load_state_dict({name: torch.full_like(own, 3) for name, own in self.state_dict().items()})


def test_weights_set_in_initialise_hold() -> None:
    body = constructed(Loaded, "loaded")
    initialise(body, torch.Generator())
    refuse_unset(body)
    assert all((value == 3).all() for value in body.state_dict().values())


def test_weights_that_initialise_leaves_out_are_refused() -> None:
    class Half(Loaded):
        def initialise(self, generator: torch.Generator) -> None:
            self.norm.reset_parameters()

    body = constructed(Half, "half")
    initialise(body, torch.Generator())
    with pytest.raises(UserError, match=r"backbone: conv\.weight is not set; set it in the method initialise"):
        refuse_unset(body)


@pytest.mark.parametrize("name", backbones())
def test_built_in_backbones_set_no_weights(name: str) -> None:
    assert constructed(lambda: find_backbone(name)(3, "batch"), name).width


FROZEN = """
from torch import nn
from ssil.testing.small_stream import backbone

def frozen_stem(in_channels, norm, final_relu=True):
    body = backbone(in_channels, norm, final_relu)
    body.stem.requires_grad_(False)
    return body
"""


def test_parameters_that_a_constructor_freezes_stay_frozen(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FROZEN)
    network = build(f"{tmp_path / 'mine.py'}:frozen_stem", LinearHead, 3, "batch", torch.Generator())
    grown = network.clone().grow(2, torch.Generator())
    frozen = [name for name, parameter in grown.named_parameters() if not parameter.requires_grad]
    assert frozen == ["backbone.stem.conv.weight", "backbone.stem.norm.weight", "backbone.stem.norm.bias"]
