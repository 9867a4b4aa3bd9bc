"""Stores whose making is killed, and goes on: each time in a process of its own, forked from this one.

    PYTHONPATH=tests python tests/data/store/killed.py PHOTOS OUT < {"name": [["write", 3]]}

makes stores of PHOTOS in OUT, and prints for each name how many of the kills took place and what differs in the end
from a store whose making nobody killed.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from ssil.data.sources.folder import folder
from ssil.data.store import layout, prepare


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


class Fuse:
    """Ends this process at the n-th event of a kind: an image, a write, a flush, before or after a rename."""

    def __init__(self, event: str, nth: int) -> None:
        self.event, self.left = event, nth
        os.fsync = self.before("flush", os.fsync)
        Path.replace = self.after("renamed", self.before("rename", Path.replace))  # type: ignore[method-assign]
        Path.open = self.opening(Path.open)  # type: ignore[method-assign]

    def burnt(self, event: str) -> bool:
        self.left -= event == self.event
        return event == self.event and self.left == 0

    def image(self, done: int, total: int) -> None:
        if self.burnt("image"):
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

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def write(self, data: bytes) -> int:
        torn = self.fuse.burnt("write")
        written = self.file.write(memoryview(data)[: len(data) // 2] if torn else data)
        if torn:
            self.file.flush()
            die()
        return written

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
        raise RuntimeError("a process failed")
    return os.WIFSIGNALED(status)


def make(photos: Path, out: Path, fuse: tuple[str, int] | None = None) -> None:
    progress = Fuse(*fuse).image if fuse else None
    prepare(folder(photos), out, short_side=16, workers=2, progress=progress)


def kill(photos: Path, out: Path, event: str, when: float) -> bool:
    """Begin or go on, and be killed; false if the store was complete before."""
    if event != "clock":
        return killed(forked(lambda: make(photos, out, (event, int(when)))))
    pid = forked(lambda: make(photos, out))
    time.sleep(when)
    os.kill(pid, signal.SIGKILL)
    return killed(pid)


def differences(one: Path, other: Path) -> list[str]:
    """The files that two directories don't share, byte for byte."""
    these, those = ({file.name: file.read_bytes() for file in folder.iterdir()} for folder in (one, other))
    return [name for name in sorted(these | those) if these.get(name) != those.get(name)]


def outcome(photos: Path, out: Path, whole: Path, kills: list[tuple[str, float]]) -> dict[str, Any]:
    """One case: the kills, and the rest of the work."""
    try:
        count = sum(kill(photos, out, event, when) for event, when in kills)
        killed(forked(lambda: make(photos, out)))
    except RuntimeError as error:
        return {"error": repr(error)}
    return {"kills": count, "differences": differences(out, whole)}


def main(photos: Path, out: Path) -> None:
    layout.PER_SHARD, layout.PER_BATCH = 7, 3
    whole = out / "whole"
    killed(forked(lambda: make(photos, whole)))
    cases = enumerate(json.load(sys.stdin).items())
    json.dump({name: outcome(photos, out / f"case-{n}", whole, kills) for n, (name, kills) in cases}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
