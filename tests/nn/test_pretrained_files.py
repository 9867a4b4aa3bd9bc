"""Files of weights: found, downloaded, refused; nothing in them is ever run."""

import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import safetensors.torch
import torch

from ssil.core.errors import UserError
from ssil.nn import pretrained
from ssil.nn.pretrained import read_pretrained

TENSORS = {"conv1.weight": torch.ones(9), "bn1.bias": torch.zeros(3)}


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("name", ["resnet18.pth", "resnet18.model"])
def test_a_pickle_is_refused_and_converted_as_the_line_says(tmp_path: Path, name: str, zipped: bool) -> None:
    torch.save(TENSORS, file := tmp_path / name, _use_new_zipfile_serialization=zipped)
    with pytest.raises(UserError, match="is a pickle, which may run any code when it is opened") as caught:
        read_pretrained(str(file))
    exec(str(caught.value).partition("in Python: ")[2])
    assert read_pretrained(f"{file}.safetensors").tensors.keys() == TENSORS.keys()


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
        ("none.safetensors", "'none.safetensors' is no file; give a .safetensors file, or a name such as timm/.*"),
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
    pretrained._downloaded.cache_clear()


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
