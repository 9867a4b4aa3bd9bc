"""File systems on which a folder can't be flushed, or nothing can be locked: told as what it is, or done without."""

import errno
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from attacked import SHORT, TRUST
from command_lines import Answer, CommandLines, contents, model_result, run_result

pytestmark = pytest.mark.slow

COMMANDS = ["run", "learn", "prepare", "rename"]


@pytest.fixture
def commands(
    ssil: CommandLines, tmp_path: Path, request: pytest.FixtureRequest
) -> dict[str, tuple[Path, Callable[..., Answer]]]:
    """Commands that write a directory: where it is, and how to carry them out with faults."""
    get = request.getfixturevalue
    model, run = (Path(shutil.copytree(get(name), tmp_path / name)) for name in ("model", "stopped_run"))
    source, store = get("jpeg_store").parent / "images", tmp_path / "store"
    learn = ("learn", model, get("photos") / "third", *TRUST, *SHORT)
    return {
        "run": (run, lambda **more: ssil(*get("run_command"), "--out", run, **more)),
        "learn": (model, lambda **more: ssil(*learn, **more)),
        "prepare": (store, lambda **more: ssil("data", "prepare", source, "--out", store, **more)),
        "rename": (model, lambda **more: ssil("rename", model, "ant", "emmet", *TRUST, **more)),
    }


Commands = dict[str, tuple[Path, Callable[..., Answer]]]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_folder_that_need_not_be_flushed(commands: Commands, name: str) -> None:
    """EINVAL says that a file system has no such call: its entries are safe without it, or never."""
    _, act = commands[name]
    answer = act(faults={"flush": errno.EINVAL})
    assert not answer.crashed, answer.err[-1500:]
    assert answer.code == 0, answer.last


@pytest.mark.parametrize("name", COMMANDS)
def test_a_folder_that_fails_to_be_flushed(commands: Commands, name: str, finished_run: Path) -> None:
    folder, act = commands[name]
    before = model_result(folder) if folder.name == "model" else None
    answer = act(faults={"flush": errno.EIO})
    assert not answer.crashed, answer.err[-1500:]
    assert answer.refused, answer.err
    assert "Input/output error" in answer.last
    assert before is None or model_result(folder)["current.json"] == before["current.json"]
    assert act().code == 0
    assert name != "run" or run_result(folder) == run_result(finished_run)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EIO], ids=errno.errorcode.get)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_lock_that_fails_is_told_as_what_it_is(commands: Commands, name: str, number: int) -> None:
    folder, act = commands[name]
    before = contents(folder)
    answer = act(faults={"lock": number})
    assert not answer.crashed, answer.err[-1500:]
    if answer.code != 0:
        assert answer.refused
        assert "another process" not in answer.last
        assert {**contents(folder), "lock": ""} == {**before, "lock": ""}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_lock_that_is_taken(commands: Commands, name: str) -> None:
    _, act = commands[name]
    answer = act(faults={"lock": errno.EWOULDBLOCK})
    assert answer.refused
    assert "another process" in answer.last
