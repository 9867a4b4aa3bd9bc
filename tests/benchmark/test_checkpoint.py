import os
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ssil.benchmark.checkpoint import Checkpoints
from ssil.core.errors import UserError

Parts = dict[str, dict[str, Tensor]]


class CrashError(Exception):
    """The process is no more."""


def state(number: int) -> tuple[dict[str, int], Parts]:
    """A state that is told from others by its number."""
    parts = {"a": {"x": torch.full((3,), float(number))}, "b": {"y": torch.tensor([number])}}
    return {"number": number}, parts


def number(folder: Path) -> int:
    """Which state the folder holds; all of its parts must belong together."""
    meta, parts = Checkpoints(folder).load()
    assert parts["a"]["x"].unique().tolist() == parts["b"]["y"].tolist() == [meta["number"]]
    return int(meta["number"])


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
    """However far a save came: three files to write (old parts removed, flushed with their folder), two to remove."""
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(*state(1))
    left = nth
    target = os if call == "fsync" else Path
    real = getattr(target, call)

    def until(*arguments: object, **named: object) -> object:
        nonlocal left
        left -= 1
        if not left:
            raise CrashError
        return real(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(target, call, until)
        try:
            checkpoints.save(*state(2))
        except CrashError:
            renamed = {"fsync": 6, "replace": 4, "unlink": 4}[call]
            assert number(tmp_path) == (1 if nth < renamed else 2)
        else:
            assert nth > {"fsync": 6, "replace": 3, "unlink": 5}[call]
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
