"""Any module from a file is a backbone with the weights that its constructor sets."""

from pathlib import Path

import pytest
import torch
from torch import nn

import tiny_runs
from ssil.core.errors import UserError
from ssil.nn.any_module import AnyModule, called_as_declared
from ssil.nn.construction import constructed
from ssil.nn.heads import LinearHead
from ssil.nn.network import Network, build

FILE = """
import torch
from torch import nn


class Drawn(nn.Module):
    def __init__(self, in_channels):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, 6, 3)
        nn.init.constant_(self.conv.bias, 0.25)
        self.register_buffer("scale", torch.tensor([2.0]), persistent=False)

    def forward(self, images):
        return self.scale * self.conv(images)


def loaded():
    body = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    body.load_state_dict(torch.load(__file__.replace(".py", ".pt"), weights_only=True))
    return body


class Staged(nn.Module):
    def __init__(self, in_channels):
        super().__init__()
        self.first, self.second = nn.Conv2d(in_channels, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)

    def forward(self, images):
        early = self.first(images)
        late = self.second(early.relu())
        return late.relu().mean((2, 3)), (early, late)


class Word(nn.Module):
    def forward(self, images):
        return "features"


class Cubes(nn.Module):
    def forward(self, images):
        return images.mean(1)


class Deaf(nn.Module):
    def forward(self, images):
        raise ValueError("no")


def nothing():
    return 3
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("modules") / "nets.py"
    path.write_text(FILE)
    torch.manual_seed(7)
    state = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()).state_dict()
    torch.save(state, path.with_suffix(".pt"))
    return path


def built(file: Path, name: str, seed: int = 0, channels: int = 1) -> Network:
    return build(f"{file}:{name}", LinearHead, channels, "batch", torch.Generator().manual_seed(seed))


def test_weights_from_a_file_are_kept(file: Path) -> None:
    network, state = built(file, "loaded"), torch.load(file.with_suffix(".pt"), weights_only=True)
    found = network.backbone.get_submodule("module").state_dict()
    assert all(torch.equal(found[name], state[name]) for name in state)
    assert network.backbone.width == 4


def test_what_a_constructor_draws_depends_on_the_seed_alone(file: Path) -> None:
    before = torch.random.get_rng_state()
    first, same, other = (built(file, "Drawn", seed).state_dict() for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(first["backbone.module.conv.weight"], same["backbone.module.conv.weight"])
    assert not torch.equal(first["backbone.module.conv.weight"], other["backbone.module.conv.weight"])
    assert (first["backbone.module.conv.bias"] == 0.25).all()


def test_maps_are_averaged_and_buffers_are_kept(file: Path) -> None:
    network, images = built(file, "Drawn", channels=3).eval(), torch.rand(2, 3, 9, 9)
    conv = network.backbone.get_submodule("module.conv")
    torch.testing.assert_close(network(images).features, 2 * conv(images).mean((2, 3)))
    assert network.backbone.width == 6
    assert network(images).stages == ()


def test_stage_maps_are_passed_on(file: Path) -> None:
    output = built(file, "Staged")(torch.rand(2, 1, 8, 8))
    assert [tuple(one.shape) for one in output.stages] == [(2, 4, 8, 8), (2, 8, 8, 8)]
    assert output.features.shape == (2, 8)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Word", r"backbone: .*:Word returned a str; return features \(B, width\)"),
        ("Cubes", r"backbone: .*:Cubes returned a Tensor of shape \(2, 32, 32\); return features"),
        ("Deaf", r"backbone: .*:Deaf takes no images of 1 channels \(.*no.*\); mend it, or give it an attribute width"),
        ("nothing", r"backbone: .*:nothing made a int; let it return an ssil.Backbone or nn.Module"),
    ],
)
def test_modules_that_are_no_backbone(file: Path, name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        built(file, name)


def test_a_module_for_other_inputs_is_told_of_in_one_line(file: Path) -> None:
    network = built(file, "loaded")
    with pytest.raises(
        UserError, match=r"backbone: .*:loaded can't compute an input of shape \(2, 3, 8, 8\) \(.*\); mend"
    ):
        network(torch.zeros(2, 3, 8, 8))


def test_arguments_are_those_that_are_declared() -> None:
    def named(final_relu: bool, in_channels: int) -> nn.Module:
        return nn.Conv2d(in_channels, 1 + final_relu, 1)

    def other(channels: int, kind: str, relu: bool) -> nn.Module:
        assert (kind, relu) == ("group", False)
        return nn.Conv2d(channels, 5, 1)

    assert called_as_declared(named, 3, "batch", True).weight.shape == (2, 3, 1, 1)
    assert called_as_declared(other, 3, "group", False).weight.shape == (5, 3, 1, 1)
    assert isinstance(called_as_declared(nn.Flatten, 3, "batch", True), nn.Flatten)


def test_a_width_of_its_own_needs_no_trial() -> None:
    class Large(nn.Module):
        width = 9

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            raise ValueError("only large images")

    assert constructed(Large, "large").width == 9
    assert isinstance(constructed(Large, "large"), AnyModule)


@pytest.mark.parametrize(("name", "method"), [("loaded", "ssil"), ("Staged", "podnet"), ("Staged", "der")])
def test_a_run_resumes_and_equals_an_uninterrupted_one(file: Path, tmp_path: Path, name: str, method: str) -> None:
    dataset = tiny_runs.patterns(tmp_path / "patterns.npz", [5] * 4)
    settings = {
        "tasks": 2,
        "memory": 6,
        "method": method,
        "backbone": f"{file}:{name}",
        "optimizer": "adamw",
        "lr": 0.01,
    }
    assert tiny_runs.resumed(dataset, tmp_path, 3, **settings).config["backbone_sha256"]
