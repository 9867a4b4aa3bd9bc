"""Work that is killed at a given moment, each time in a process of its own, forked from this one."""

import builtins
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NoReturn


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


class Fuse:
    """Ends this process at the n-th event of a kind: a write, a flush, before or after a rename, a removal, a tick."""

    def __init__(self, event: str, nth: int) -> None:
        self.event, self.left = event, nth
        os.fsync = self.before("flush", os.fsync)
        Path.replace = self.after("renamed", self.before("rename", Path.replace))  # type: ignore[method-assign]
        Path.unlink = self.before("unlink", Path.unlink)  # type: ignore[method-assign]
        builtins.open = self.opening(builtins.open)

    def burnt(self, event: str) -> bool:
        self.left -= event == self.event
        return event == self.event and self.left == 0

    def tick(self, event: str) -> None:
        """An event that the work itself tells of."""
        if self.burnt(event):
            die()

    def before(self, event: str, call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given, **named: die() if self.burnt(event) else call(*given, **named)

    def after(self, event: str, call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given, **named: (call(*given, **named), die() if self.burnt(event) else None)

    def opening(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def opened(path: Path, mode: str = "r", *rest: Any, **more: Any) -> Any:
            file = call(path, mode, *rest, **more)
            return Torn(file, self) if mode == "xb" else file

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


def kill(work: Callable[[Fuse | None], object], event: str, when: float) -> bool:
    """Do the work, and be killed at its n-th event, or by the "clock"; false if it was done before."""
    if event != "clock":
        return killed(forked(lambda: work(Fuse(event, int(when)))))
    pid = forked(lambda: work(None))
    time.sleep(when)
    os.kill(pid, signal.SIGKILL)
    return killed(pid)


def results(script: Path, *arguments: Path, cases: object) -> dict[str, Any]:
    """What a script that does the killing says of these cases; without a GPU, whose threads forbid a fork."""
    done = subprocess.run(
        [sys.executable, script, *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"},
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
