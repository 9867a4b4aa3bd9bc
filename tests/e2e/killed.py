"""Runs that are killed, and go on: each in a process of its own, forked from this one, which has torch ready.

    PYTHONPATH=tests python tests/e2e/killed.py FOLDER < {"name": {"settings": {}, "kills": [["write", 3]]}}

prints, for each name, how many of the kills took place and what differs in the end from a run that nobody killed.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import torch

import tiny
from ssil.record import read_record
from ssil.runs import Watcher, run
from ssil.trainer import Pace


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


class Fuse(Watcher):
    """Ends this process at the n-th event of a kind: a step, a write, a flush, before or after a rename, a removal."""

    def __init__(self, event: str, nth: int) -> None:
        self.event, self.left = event, nth
        os.fsync = self.before("flush", os.fsync)
        Path.replace = self.after("renamed", self.before("rename", Path.replace))  # type: ignore[method-assign]
        Path.unlink = self.before("unlink", Path.unlink)  # type: ignore[method-assign]
        Path.open = self.opening(Path.open)  # type: ignore[method-assign]

    def burnt(self, event: str) -> bool:
        self.left -= event == self.event
        return event == self.event and self.left == 0

    def pace(self, task: int, pace: Pace) -> None:
        if self.burnt("step"):
            die()

    def before(self, event: str, call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments: die() if self.burnt(event) else call(*arguments)

    def after(self, event: str, call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments: (call(*arguments), die() if self.burnt(event) else None)

    def opening(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def opened(path: Path, mode: str = "r", *rest: Any, **more: Any) -> Any:
            file = call(path, mode, *rest, **more)
            return Torn(file, self) if mode == "wb" else file

        return opened


class Torn:
    """A file of which a write may get only half to the disk."""

    def __init__(self, file: BinaryIO, fuse: Fuse) -> None:
        self.file, self.fuse = file, fuse
        self.flush, self.fileno = file.flush, file.fileno

    def write(self, data: bytes) -> None:
        torn = self.fuse.burnt("write")
        self.file.write(data[: len(data) // 2] if torn else data)
        if torn:
            self.file.flush()
            die()

    def __enter__(self) -> "Torn":
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()


def forked(work: Callable[[], object]) -> int:
    """The id of a process that does the work."""
    if pid := os.fork():
        return pid
    try:
        work()
    except BaseException as error:
        sys.stderr.write(f"{error!r}\n")
        os._exit(1)
    os._exit(0)


def killed(pid: int) -> bool:
    """Whether a process was killed; otherwise it must have done its work."""
    _, status = os.waitpid(pid, 0)
    if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status):
        raise RuntimeError("a run failed")
    return os.WIFSIGNALED(status)


def kill(settings: dict[str, Any], event: str, when: float) -> bool:
    """Start the run and kill it; false if it came to its end before."""
    config = tiny.config(**settings)
    if event != "clock":
        return killed(forked(lambda: run(config, Fuse(event, int(when)))))
    pid = forked(lambda: run(config))
    time.sleep(when)
    os.kill(pid, signal.SIGKILL)
    return killed(pid)


def differences(one: Path, other: Path) -> list[str]:
    """What two directories don't share, bit for bit, times aside."""
    if not (one / "checkpoint" / "state.json").exists():
        return ["checkpoint"]
    these, those = tiny.tensors(one), tiny.tensors(other)
    unequal = [name for name in these if name not in those or not torch.equal(these[name], those[name])]
    missing = [name for name in those if name not in these]
    pairs = [(file, other / "arrays" / file.name) for file in (one / "arrays").iterdir()]
    arrays = [mine.name for mine, theirs in pairs if mine.read_bytes() != theirs.read_bytes()]
    record = [] if tiny.timeless(read_record(one)) == tiny.timeless(read_record(other)) else ["record"]
    return unequal + missing + arrays + record


def outcome(folder: Path, out: Path, settings: dict[str, Any], kills: list[tuple[str, float]]) -> dict[str, Any]:
    """One case: the run that nobody killed (made once), the kills, and the rest of the run."""
    whole = folder / "-".join(settings.values())
    settings = settings | {"dataset": folder / "patterns.npz"}
    if not whole.exists():
        run(tiny.config(**settings, out=whole))
    try:
        count = sum(kill(settings | {"out": out}, event, when) for event, when in kills)
        run(tiny.config(**settings, out=out))
    except Exception as error:
        return {"error": repr(error)}
    return {"kills": count, "differences": differences(out, whole)}


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    tiny.patterns(folder / "patterns.npz", [6] * 6)
    cases = enumerate(json.load(sys.stdin).items())
    json.dump({name: outcome(folder, folder / f"killed-{n}", **case) for n, (name, case) in cases}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
