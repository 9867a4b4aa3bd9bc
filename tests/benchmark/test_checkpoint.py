import os
import stat
from pathlib import Path
from typing import NoReturn

import pytest
import torch
from torch import Tensor

from ssil.benchmark.checkpoint import Checkpoints
from ssil.core.errors import UserError
from ssil.core.files import write_atomic, write_json
from ssil.core.tensor_files import pack, read_tensors, write_tensors

Parts = dict[str, dict[str, Tensor]]


class CrashError(Exception):
    """The process is no more."""


def crash(*_: object) -> NoReturn:
    raise CrashError


def state(number: int) -> tuple[dict[str, int], Parts]:
    """A state that is told from others by its number."""
    parts = {"a": {"x": torch.full((3,), float(number))}, "b": {"y": torch.tensor([number])}}
    return {"number": number}, parts


def number(folder: Path) -> int:
    """Which state the folder holds; all of its parts must belong together."""
    meta, parts = Checkpoints(folder).load()
    assert parts["a"]["x"].unique().tolist() == parts["b"]["y"].tolist() == [meta["number"]]
    return int(meta["number"])


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_a_write_that_dies_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    path = tmp_path / "deep" / "file"
    write_atomic(path, b"old")
    monkeypatch.setattr(*((os, "fsync", crash) if moment == "fsync" else (Path, "replace", crash)))
    with pytest.raises(CrashError):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    monkeypatch.undo()
    write_atomic(path, b"new")
    assert [file.name for file in path.parent.iterdir()] == ["file"]
    assert path.read_bytes() == b"new"


def test_what_is_renamed_has_been_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file before the rename, its folder after it: else a power cut may leave an empty file."""
    events: list[str] = []
    replace = Path.replace

    def renamed(aside: Path, path: Path) -> None:
        events.append("rename")
        replace(aside, path)

    monkeypatch.setattr(os, "fsync", lambda descriptor: events.append("folder" if is_folder(descriptor) else "file"))
    monkeypatch.setattr(Path, "replace", renamed)
    write_atomic(tmp_path / "file", b"content")
    assert events == ["file", "rename", "folder"]


def is_folder(descriptor: int) -> bool:
    return stat.S_ISDIR(os.fstat(descriptor).st_mode)


def test_json_without_nan(tmp_path: Path) -> None:
    write_json(tmp_path / "file", {"é": [1, None]})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "file", {"x": float("nan")})
    assert (tmp_path / "file").read_text() == '{\n "é": [\n  1,\n  null\n ]\n}\n'


def test_tensors_of_any_kind_come_back(tmp_path: Path) -> None:
    tensors = {
        "layout": torch.arange(96.0).view(2, 3, 4, 4).to(memory_format=torch.channels_last),
        "view": torch.arange(10)[::2],
        "shared": torch.ones(5)[1:3],
        "double": torch.tensor([1e-300, torch.nan], dtype=torch.float64),
        "half": torch.tensor([1.5], dtype=torch.bfloat16),
        "scalar": torch.tensor(3),
        "empty": torch.empty(0, 7),
        "weight": torch.nn.Parameter(torch.ones(2)),
    }
    write_tensors(tmp_path / "file", tensors)
    back = read_tensors(tmp_path / "file")
    assert back.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert back[name].dtype == tensor.dtype
        torch.testing.assert_close(back[name], tensor.detach(), rtol=0, atol=0, equal_nan=True)


def test_equal_tensors_have_equal_bytes() -> None:
    picture = torch.arange(12.0).view(1, 3, 2, 2)
    assert pack({"x": picture}) == pack({"x": picture.to(memory_format=torch.channels_last)})


def test_a_state_replaces_the_one_before(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "checkpoint")
    assert not checkpoints.exists
    for each in (1, 2):
        checkpoints.save(*state(each))
        assert checkpoints.exists
        assert number(checkpoints.folder) == each
    assert len(list(checkpoints.folder.iterdir())) == 3


def test_a_part_may_stay_as_it_is(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(*state(1))
    kept = {file.name: file.stat().st_mtime_ns for file in tmp_path.glob("a-*")}
    checkpoints.save({"number": 2}, {"a": None, "c": {"z": torch.zeros(1)}})
    meta, parts = checkpoints.load()
    assert meta == {"number": 2}
    assert parts.keys() == {"a", "c"}
    assert parts["a"]["x"].tolist() == [1.0] * 3
    assert {file.name: file.stat().st_mtime_ns for file in tmp_path.glob("a-*")} == kept
    assert not list(tmp_path.glob("b-*"))


@pytest.mark.parametrize("call", ["fsync", "replace", "unlink"])
@pytest.mark.parametrize("nth", range(1, 7))
def test_there_is_always_one_whole_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, nth: int) -> None:
    """However far a save came: three files to write (flushed with their folder), renamed, two to remove."""
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(*state(1))
    left = nth
    target = os if call == "fsync" else Path
    real = getattr(target, call)

    def until(*arguments: object) -> object:
        nonlocal left
        left -= 1
        if not left:
            raise CrashError
        return real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(target, call, until)
        try:
            checkpoints.save(*state(2))
        except CrashError:
            renamed = {"fsync": 6, "replace": 4, "unlink": 1}[call]
            assert number(tmp_path) == (1 if nth < renamed else 2)
        else:
            assert nth > {"fsync": 6, "replace": 3, "unlink": 2}[call]
            assert number(tmp_path) == 2
    checkpoints.save(*state(3))
    assert number(tmp_path) == 3
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("position", [0, 8, 60, -1])
def test_a_flipped_byte_is_noticed_and_the_file_named(tmp_path: Path, position: int) -> None:
    Checkpoints(tmp_path).save(*state(1))
    (file,) = tmp_path.glob("a-*")
    data = bytearray(file.read_bytes())
    data[position] ^= 1
    file.write_bytes(data)
    with pytest.raises(UserError, match=rf"^checkpoint: .*{file.name} is damaged .*; start again in a new folder$"):
        Checkpoints(tmp_path).load()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    Checkpoints(tmp_path).save(*state(1))
    (file,) = tmp_path.glob("b-*")
    file.unlink()
    with pytest.raises(UserError, match=rf"^checkpoint: .*{file.name} can't be read .*; start again in a new folder$"):
        Checkpoints(tmp_path).load()


@pytest.mark.parametrize("content", ["", "{", "\x00"])
def test_a_broken_state_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "state.json").write_text(content)
    with pytest.raises(
        UserError, match=r"^checkpoint: .*state.json can't be read \(.*\); start again in a new folder$"
    ):
        Checkpoints(tmp_path).load()
