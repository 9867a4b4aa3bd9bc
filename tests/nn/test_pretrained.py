"""Pretrained weights: read, downloaded, refused; loaded as into a literal ResNet-18 with torchvision's names."""

import pickle
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from ssil.core.errors import UserError
from ssil.nn import pretrained
from ssil.nn.heads import LinearHead
from ssil.nn.network import Network, build
from ssil.nn.pretrained import Pretrained, load_backbone, read_pretrained
from ssil.nn.resnet import Norm

Tensors = dict[str, Tensor]


class BasicBlock(nn.Module):
    """As in torchvision, written out from its parameter names and the paper."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        out = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(out)) + identity)


class ResNet18(nn.Module):
    """The usual one for ImageNet, with more blocks if so wished."""

    def __init__(self, blocks: tuple[int, ...] = (2, 2, 2, 2)) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = self.layer(64, 64, blocks[0], 1)
        self.layer2 = self.layer(64, 128, blocks[1], 2)
        self.layer3 = self.layer(128, 256, blocks[2], 2)
        self.layer4 = self.layer(256, 512, blocks[3], 2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512, 10)

    @staticmethod
    def layer(inputs: int, outputs: int, blocks: int, stride: int) -> nn.Sequential:
        rest = [BasicBlock(outputs, outputs, 1) for _ in range(blocks - 1)]
        return nn.Sequential(BasicBlock(inputs, outputs, stride), *rest)

    def features(self, x: Tensor) -> Tensor:
        x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return torch.flatten(self.avgpool(x), 1)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def literal(blocks: tuple[int, ...] = (2, 2, 2, 2)) -> ResNet18:
    """With random weights, and batch norms whose statistics are nothing like 0 and 1."""
    network, random = ResNet18(blocks).eval(), seeded(0)
    for name, tensor in network.state_dict().items():
        if name.endswith("num_batches_tracked"):
            tensor.fill_(7)
        elif "running_var" in name or (tensor.ndim == 1 and name.endswith("weight")):
            tensor.uniform_(0.5, 1.5, generator=random)
        else:
            spread = 1.4 / tensor[0].numel() ** 0.5 if tensor.ndim == 4 else 0.2
            tensor.normal_(0, spread, generator=random)
    return network


@pytest.fixture(scope="module")
def usual() -> ResNet18:
    return literal()


def made(given: Pretrained | None, name: str = "resnet18", norm: Norm = "batch", channels: int = 3) -> Network:
    return build(name, LinearHead, channels, norm, seeded(1), init=given)


@pytest.mark.parametrize("final_relu", [True, False])
def test_features_are_those_of_torchvisions_network(usual: ResNet18, tmp_path: Path, final_relu: bool) -> None:
    file = tmp_path / "resnet18.safetensors"
    safetensors.torch.save_file(usual.state_dict(), file)
    ours = build("resnet18", LinearHead, 3, "batch", seeded(1), final_relu, read_pretrained(str(file)))
    images = torch.randn(4, 3, 64, 64, generator=seeded(2), dtype=torch.float64)  # so that only rounding is left out
    with torch.inference_mode():
        features, stages = ours.eval().double().backbone(images)
        expected = deepcopy(usual).double().features(images)
    pooled = stages[-1].relu().mean((2, 3))
    torch.testing.assert_close(pooled, expected, rtol=0, atol=1e-9)
    assert torch.equal(features, pooled) is final_relu
    assert bool((features < 0).any()) is not final_relu


def prefixed(prefix: str) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {prefix + name: tensor for name, tensor in tensors.items()}


def without_counters(tensors: Tensors) -> Tensors:
    return {name: tensor for name, tensor in tensors.items() if "num_batches" not in name}


def a_momentum_beside(tensors: Tensors) -> Tensors:
    """Of the weights alone, as an optimiser has it."""
    momentum = {f"momentum/{name}": torch.zeros_like(tensor) for name, tensor in tensors.items() if "run" not in name}
    return prefixed("model/")(tensors) | without_counters(momentum)


def with_a_head(name: str, classes: int) -> Callable[[Tensors], Tensors]:
    """In place of `fc`, as other networks name and size theirs."""
    head = {f"{name}.weight": torch.ones(classes, 512), f"{name}.bias": torch.ones(classes)}
    return lambda tensors: {key: tensor for key, tensor in tensors.items() if key.partition(".")[0] != "fc"} | head


@pytest.mark.parametrize(
    "changed",
    [
        prefixed("module."),
        prefixed("model.encoder."),
        without_counters,
        a_momentum_beside,
        with_a_head("fc", 1000),
        with_a_head("classifier", 1000),
        with_a_head("head.fc", 21841),
    ],
)
def test_prefixes_and_what_files_have_or_lack(usual: ResNet18, changed: Callable[[Tensors], Tensors]) -> None:
    plain, other = (made(Pretrained("f", tensors)) for tensors in (usual.state_dict(), changed(usual.state_dict())))
    for key, value in without_counters(plain.backbone.state_dict()).items():
        assert torch.equal(value, other.backbone.state_dict()[key])


@pytest.mark.parametrize(
    ("name", "norm", "channels"), [("resnet18_small", "batch", 3), ("resnet14", "batch", 1), ("resnet14", "group", 1)]
)
def test_our_own_names_fit_any_backbone(name: str, norm: Norm, channels: int) -> None:
    """As a checkpoint has them: of the whole network, with a head and more."""
    trained = build(name, LinearHead, channels, norm, seeded(5)).grow(3, seeded(5))
    trained(torch.randn(4, channels, 16, 16, generator=seeded(6)))
    saved = prefixed("network/")(trained.state_dict()) | {"scorer.main/means": torch.zeros(3)}
    network = made(Pretrained("f", saved), name, norm, channels)
    for key, value in trained.backbone.state_dict().items():
        assert torch.equal(network.backbone.state_dict()[key], value)
    assert network.head.classes == 0


def test_half_precision_and_channels_last(usual: ResNet18) -> None:
    halves = {
        name: tensor.half() if tensor.is_floating_point() else tensor for name, tensor in usual.state_dict().items()
    }
    kernel = made(Pretrained("f", halves)).backbone.state_dict()["stem.0.conv.weight"]
    assert kernel.dtype == torch.float32
    assert kernel.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(kernel, usual.conv1.weight.detach(), rtol=1e-3, atol=1e-4)


def less(*names: str) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {name: tensor for name, tensor in tensors.items() if name not in names}


def more(**new: Tensor) -> Callable[[Tensors], Tensors]:
    return lambda tensors: tensors | {name.replace("_", "."): tensor for name, tensor in new.items()}


def nothing(_: Tensors) -> Tensors:
    return dict.fromkeys("abcd", torch.ones(1))


def twice(tensors: Tensors) -> Tensors:
    return prefixed("query.")(tensors) | prefixed("key.")(tensors)


SAME = "give weights of the same --backbone"


@pytest.mark.parametrize(
    ("changed", "settings", "message"),
    [
        (less("layer2.0.downsample.1.running_mean"), {}, f"f lacks layer2.0.downsample.1.running_mean; {SAME}"),
        (
            more(conv1_weight=torch.ones(64, 1, 7, 7)),
            {},
            "conv1.weight of f is 64x1x7x7, the backbone's is 64x3x7x7; the weights are for images of 1 channel(s), "
            "and these have 3",
        ),
        (
            dict,
            {"channels": 1},
            "conv1.weight of f is 64x3x7x7, the backbone's is 64x1x7x7; the weights are for images of 3 channel(s), "
            "and these have 1",
        ),
        (
            dict,
            {"name": "resnet18_small"},
            "conv1.weight of f is 64x3x7x7, the backbone's is 64x3x3x3; resnet18 begins with a kernel of 7x7, the "
            "others with one of 3x3: give another --backbone",
        ),
        (
            more(layer1_0_conv1_weight=torch.ones(64, 64, 1, 1)),
            {},
            f"layer1.0.conv1.weight of f is 64x64x1x1, the backbone's is 64x64x3x3; {SAME}",
        ),
        (
            more(bn1_bias=torch.ones(64, dtype=torch.int8)),
            {},
            "bn1.bias of f is of torch.int8; give weights in floating point",
        ),
        (
            more(layer1_2_conv1_weight=torch.ones(1)),
            {},
            f"f has layer1.2.conv1.weight, which the backbone has not; {SAME}",
        ),
        (dict, {"norm": "group"}, "f is of a network with batch norm; leave out --norm group"),
        (nothing, {}, f"f has nothing of the backbone, but a, b, c; {SAME}"),
        (dict, {"name": "identity"}, f"f has nothing of the backbone, but conv1.weight, bn1.weight, bn1.bias; {SAME}"),
        (twice, {}, "f holds several networks, key. and query.; save one of them alone"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(
    usual: ResNet18, changed: Callable[[Tensors], Tensors], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError) as caught:
        made(Pretrained("f", changed(usual.state_dict())), **settings)
    assert str(caught.value) == f"init: {message}"


def test_a_deeper_network_is_refused() -> None:
    """ResNet-34 has all names of ResNet-18, with the same shapes."""
    with pytest.raises(UserError, match=r"^init: f has layer1\.2\.conv1\.weight, which the backbone has not"):
        load_backbone(made(None).backbone, Pretrained("f", literal((3, 4, 6, 3)).state_dict()))


TENSORS = {"conv1.weight": torch.ones(9), "bn1.bias": torch.zeros(3)}
AWKWARD = {
    "turned": torch.arange(6.0).view(2, 3).T,
    "shared": (kept := torch.arange(4.0)),
    "same": kept,
    "part": kept[1:],
}
"""What a safetensors file does not take as it is: a tensor that is not contiguous, and tensors that share memory."""


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("name", ["resnet18.pth", "resnet18.model"])
def test_a_pickle_is_refused_and_converted_as_the_line_says(tmp_path: Path, name: str, zipped: bool) -> None:
    torch.save(TENSORS | AWKWARD, file := tmp_path / name, _use_new_zipfile_serialization=zipped)
    with pytest.raises(UserError, match="is a pickle, which may run any code when it is opened") as caught:
        read_pretrained(str(file))
    exec(str(caught.value).partition("in Python: ")[2])
    found = read_pretrained(f"{file}.safetensors").tensors
    assert found.keys() == {*TENSORS, *AWKWARD}
    assert all(found[name].equal(tensor) for name, tensor in (TENSORS | AWKWARD).items())


class Bomb:
    """What a pickle may hold."""

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return pytest.fail, ("the file's code was run",)


@pytest.mark.parametrize("name", ["a.pt", "a.pth", "a.bin", "a.safetensors"])
def test_no_code_of_a_file_is_run(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(UserError, match="is a pickle"):
        read_pretrained(str(tmp_path / name))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "none.safetensors",
            "'none.safetensors' is no file; give a .safetensors file, a name of `ssil weights`, or one such as timm/.*",
        ),
        ("some/none.safetensors", "'some/none.safetensors' is no file; .*"),
        ("resnet18", "'resnet18' is no file; .*"),
        ("folder", "'folder' is no file; .*"),
        ("broken.safetensors", "broken.safetensors is no whole safetensors file (.*); get it again"),
    ],
)
def test_a_file_that_is_missing_or_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    whole = safetensors.torch.save(TENSORS)
    Path("broken.safetensors").write_bytes(whole[:-4])
    with pytest.raises(UserError, match=f"^init: {message}$"):
        read_pretrained(name)


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "a.safetensors").touch()
    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(
        UserError, match=r"^init: .*a\.safetensors can't be read \(Permission denied\); check the file$"
    ):
        read_pretrained(str(tmp_path / "a.safetensors"))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A hub of our own."""
    library = SimpleNamespace()
    monkeypatch.setitem(sys.modules, "huggingface_hub", library)
    yield library
    pretrained.downloaded.cache_clear()


def test_a_model_of_the_hub(hub: SimpleNamespace, tmp_path: Path) -> None:
    asked = list[tuple[str, str]]()

    def download(repository: str, file: str) -> str:
        asked.append((repository, file))
        safetensors.torch.save_file(TENSORS, tmp_path / "blob")
        return str(tmp_path / "blob")

    hub.hf_hub_download = download
    for _ in range(2):
        given = read_pretrained("timm/resnet18.a1_in1k")
    assert asked == [("timm/resnet18.a1_in1k", "model.safetensors")]
    assert given.source == "timm/resnet18.a1_in1k"
    assert given.tensors.keys() == TENSORS.keys()


def test_no_network(hub: SimpleNamespace) -> None:
    def download(repository: str, file: str) -> str:
        raise ConnectionError("two\nlines")

    hub.hf_hub_download = download
    message = (
        r"^init: model.safetensors of a/b can't be had from the Hugging Face hub \(two lines\); give a local file$"
    )
    with pytest.raises(UserError, match=message):
        read_pretrained("a/b")


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UserError, match=r"^init: 'a/b' is no file, .* hub takes: pip install 'ssil\[hub\]'$"):
        read_pretrained("a/b")
