"""Backbones that grow branches, in a network: by hand on tiny tensors, and through saving and restoring."""

from typing import Literal, get_args

import pytest
import torch
from torch import Tensor, nn

from ssil.core.errors import UserError
from ssil.nn.backbones import Identity
from ssil.nn.branches import Branches, Branching
from ssil.nn.heads import CosineHead, Head, LinearHead, ProxyHead
from ssil.nn.network import Network, build, folded
from ssil.nn.resnet import Backbone, ResNet, resnet8

IMAGES = torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(5))
both = pytest.mark.parametrize("branching", get_args(Branching))


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def made(branching: Branching = "backbone", classes: int = 3) -> Network:
    return build("resnet8", LinearHead, 3, "batch", seeded(0), branching=branching).grow(classes, seeded(1))


def grown(branching: Branching, branches: int = 3) -> Network:
    """A network whose branches differ, in weights and statistics, with an auxiliary head."""
    network = made(branching)
    for number in range(1, branches):
        network.add_branch(seeded(number))
        for parameter in network.parameters():
            parameter.data += 0.1 * torch.randn(parameter.shape, generator=seeded(number))
        network(IMAGES)
    network.add_auxiliary_head(2, seeded(9))
    return network


class Doubling(Backbone):
    """Two features: a pixel times a weight, and its negative."""

    width = 2

    def __init__(self) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(2.0))

    def forward(self, images: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        first = self.factor * images.flatten(1)[:, :1]
        return torch.cat([first, -first], 1), ()


def tiny() -> Network:
    """One class with the weights (1, 10) and the bias 0.5."""
    head = LinearHead(2)
    head.weight, head.bias = nn.Parameter(torch.tensor([[1.0, 10.0]])), nn.Parameter(torch.tensor([0.5]))
    return Network(Branches(Doubling(), "backbone"), head)


def test_a_branch_by_hand() -> None:
    """A pixel of 3: features (6, -6), then (6, -6, 15, -15) with a new factor of 5; new columns are (100, 1000)."""
    network, pixel = tiny(), torch.full((1, 1, 1, 1), 3.0)
    assert network(pixel).logits.item() == 6 - 60 + 0.5
    network.add_branch(seeded(0))
    assert network(pixel).features.tolist() == [[6, -6, 6, -6]]  # a branch starts as a copy
    assert network.head.weight[:, :2].tolist() == [[1, 10]]
    network.head.weight.data[:, 2:] = torch.tensor([100.0, 1000.0])
    network.get_parameter("backbone.new.factor").data.fill_(5.0)
    network.add_auxiliary_head(2, seeded(0))
    auxiliary = network.auxiliary
    assert isinstance(auxiliary, LinearHead)
    assert auxiliary.bias is not None
    auxiliary.weight.data, auxiliary.bias.data = torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([0.0, 1.0])
    output = network(pixel)
    assert output.features.tolist() == [[6, -6, 15, -15]]
    assert output.logits.tolist() == [[6 - 60 + 1500 - 15000 + 0.5]]
    assert output.auxiliary is not None
    assert output.auxiliary.tolist() == [[15, -29]]  # of the newest branch alone
    network.auxiliary = None
    assert network(pixel).auxiliary is None
    assert network(pixel).logits.tolist() == output.logits.tolist()


@both
@pytest.mark.parametrize("name", ["resnet8", "resnet18", "efficientnet_lite0"])
@pytest.mark.parametrize("final_relu", [True, False])
def test_one_branch_computes_what_its_backbone_does(name: str, branching: Branching, final_relu: bool) -> None:
    whole = build(name, LinearHead, 3, "batch", seeded(0), final_relu).grow(3, seeded(1)).eval()
    branched = build(name, LinearHead, 3, "batch", seeded(0), final_relu, None, branching).grow(3, seeded(1)).eval()
    found, wanted = branched(IMAGES), whole(IMAGES)
    for one, other in zip((*found[:2], *found.stages), (*wanted[:2], *wanted.stages), strict=True):
        assert torch.equal(one, other)


@both
def test_old_branches_and_logits_are_kept(branching: Branching) -> None:
    """New columns that are zero leave the logits as they were."""
    network = made(branching)
    network(IMAGES)
    before = network.eval()(IMAGES)
    network.add_branch(seeded(2))
    network.head.weight.data[:, 64:] = 0
    after = network.eval()(IMAGES)
    assert torch.equal(after.features, torch.cat([before.features, before.features], 1))
    torch.testing.assert_close(after.logits, before.logits)
    assert [len(stage[0]) for stage in after.stages] == [16, 32, 64]


def test_what_branches_share() -> None:
    whole, last = grown("backbone"), grown("last stage")
    parts = {name.partition(".")[0] for name in last.backbone.state_dict()}
    assert parts == {"shared", "old", "new"}
    assert not any(name.startswith("shared") for name in whole.backbone.state_dict())
    sizes = [sum(one.numel() for one in network.backbone.parameters()) for network in (whole, last)]
    one = resnet8(3, "batch")
    alone, third = (sum(p.numel() for p in part.parameters()) for part in (one, one.stages[2]))
    assert sizes == [3 * alone, alone + 2 * third]


@both
@pytest.mark.parametrize("head", [LinearHead, CosineHead, ProxyHead])
def test_any_head_grows_in_both_directions(branching: Branching, head: type[Head]) -> None:
    network = build("resnet8", head, 3, "batch", seeded(0), branching=branching).grow(3, seeded(1))
    before = network.head.weight.clone()
    network.add_branch(seeded(2))
    network = network.grow(2, seeded(3))
    assert torch.equal(network.head.weight[:3, ..., :64], before)
    assert network.head.weight.shape[-1] == 128
    assert network(IMAGES).logits.shape == (4, 5)


@both
def test_a_saved_network_comes_back(branching: Branching) -> None:
    """With three branches and an auxiliary head, into a network that has one branch and none."""
    network = grown(branching)
    rebuilt = made(branching)
    rebuilt.restore({name: value.contiguous() for name, value in network.state_dict().items()})
    assert rebuilt.state_dict().keys() == network.state_dict().keys()
    found, wanted = rebuilt.eval()(IMAGES), network.eval()(IMAGES)
    for one, other in zip((*found[:2], *found.stages), (*wanted[:2], *wanted.stages), strict=True):
        assert torch.equal(one, other)
    assert found.auxiliary is not None
    assert wanted.auxiliary is not None
    assert torch.equal(found.auxiliary, wanted.auxiliary)
    assert rebuilt.backbone.width == network.backbone.width == 3 * 64


@pytest.mark.parametrize(
    "damage",
    [
        {"backbone.old.2.stem.conv.weight": torch.zeros(16, 3, 3, 3)},
        {"backbone.old.0.stem.conv.weight": torch.zeros(16, 3, 3, 4)},
        {"auxiliary.weight": torch.zeros(2**40, 0)},
        {"auxiliary.weight": torch.zeros(())},
        {"head.weight": torch.zeros(3, 64)},
    ],
    ids=["a part of a branch", "another shape", "nothing of no width", "a number", "too few columns"],
)
def test_a_state_that_does_not_fit_is_refused(damage: dict[str, Tensor]) -> None:
    state = dict(grown("backbone").state_dict()) | damage
    with pytest.raises(RuntimeError, match="Error"):
        made().restore(state)


def test_a_plain_network_takes_no_branches() -> None:
    plain = build("resnet8", LinearHead, 3, "batch", seeded(0)).grow(3, seeded(1))
    with pytest.raises(RuntimeError, match="Unexpected key"):
        plain.restore(grown("backbone").state_dict())
    with pytest.raises(UserError, match=r"^method: its network has no branches; give Method\(branches=...\)$"):
        plain.add_branch(seeded(0))


def test_what_cannot_grow() -> None:
    with pytest.raises(UserError, match=r"^backbone: none of its parts is trained, so that it can't grow"):
        Branches(Identity(4, "batch"), "backbone")
    with pytest.raises(UserError, match=r"^backbone: the last stage of Doubling can't be told from the others"):
        Branches(Doubling(), "last stage")
    single = ResNet(nn.Identity(), (8,), 1, "batch", True)
    with pytest.raises(UserError, match=r"^backbone: the last stage of ResNet"):
        single.split()


@both
def test_copies_and_folded_copies_agree(branching: Branching) -> None:
    network = grown(branching).eval()
    wanted = network.clone()(IMAGES)
    for copy in (network.grow(0, seeded(0)).eval(), folded(network), network.headless()):
        torch.testing.assert_close(copy(IMAGES).features, wanted.features, rtol=1e-4, atol=1e-5)
    assert not any(isinstance(part, nn.BatchNorm2d) for part in folded(network).modules())


def test_parameters_that_are_never_trained_stay_so_in_every_branch() -> None:
    """Named by the constructor in one branch, they are fixed in its copies and its predecessors."""
    network = Network(Branches(Doubling(), "backbone"), LinearHead(2), ("backbone.new.factor",))
    network.add_branch(seeded(0))
    network.add_branch(seeded(0))
    fixed = {name for name, own in network.trainable(network).named_parameters() if not own.requires_grad}
    assert fixed == {"backbone.old.0.factor", "backbone.old.1.factor", "backbone.new.factor"}


Mode = Literal["train", "eval"]


@pytest.mark.parametrize(("mode", "changed"), [("train", True), ("eval", False)])
def test_statistics_of_a_branch_follow_its_own_mode(mode: Mode, changed: bool) -> None:
    network = made()
    network.add_branch(seeded(0))
    old = network.get_submodule("backbone.old").train(mode == "train")
    before = [buffer.clone() for buffer in old.buffers()]
    network(IMAGES)
    assert changed != all(torch.equal(one, other) for one, other in zip(old.buffers(), before, strict=True))
