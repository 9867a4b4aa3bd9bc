"""A run at work on a node of a cluster. It is sent there as it is, so it needs nothing but Python itself."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

PAUSE = 0.5
"""Seconds between two looks at the run."""
STATE = "checkpoint/state.json"
"""The file that makes a checkpoint count; all that it needs is there before it, and is removed after it."""
LOCK = "lock"

_PLACES = ("RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS")
"""What torchrun and srun tell a process of its place among others."""

_MORTAL = """import ctypes, os, signal, sys
prctl = getattr(ctypes.CDLL(None), "prctl", None)
prctl and prctl(1, signal.SIGKILL)
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
os.execv(sys.executable, [sys.executable, "-m", *sys.argv[1:]])"""
"""Run a module in a process that the kernel ends with its parent, where that is Linux; Ray blocks SIGINT."""


class News(NamedTuple):
    """What a run has come to since the last look."""

    lines: Sequence[str] = ()
    """Of its output."""
    files: Mapping[str, bytes] = {}
    """Those that are new or have changed, by name."""
    names: Sequence[str] = ()
    """All that there are."""
    code: int | None = None
    """The exit code, once it has ended."""
    reason: str = ""
    """Its last words."""


class Worker:
    """One run, in a folder on this node's own disk."""

    stopped = False

    def ready(self) -> None:
        """Answer, once there is room for the run."""

    def begin(self, command: Sequence[str], here: str, files: Mapping[str, bytes]) -> News:
        """Start the run's process (its --out is a folder here) with these files; relative paths begin `here`."""
        self.folder = Path(mkdtemp(prefix="ssil-"))
        self.sent, self.rest = dict[str, tuple[int, int]](), ""
        for name, content in files.items():
            path = self.folder / "run" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        with (self.folder / "said").open("w") as said, (self.folder / "words").open("w") as words:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _MORTAL, *command[:-1], str(self.folder / "run"), "--json"],
                stdout=said,
                stderr=words,
                cwd=here if Path(here).is_dir() else None,
                env=alone(os.environ),
                start_new_session=True,
            )
        self.said = (self.folder / "said").open()
        return News()

    def news(self) -> News:
        """Wait until there is something to tell; after the last of it, nothing is left here."""
        while True:
            if self.stopped:
                self.process.send_signal(signal.SIGINT)
                self.stopped = False
            code = self._ended()
            *lines, self.rest = (self.rest + self.said.read()).split("\n")
            files, names = changed(self.folder / "run", self.sent)
            if code is not None:
                words = (self.folder / "words").read_text().strip().splitlines()
                shutil.rmtree(self.folder)
                return News(lines, files, names, code, (words or [""])[-1])
            if lines or files:
                return News(lines, files, names)

    def _ended(self) -> int | None:
        try:
            return self.process.wait(PAUSE)
        except subprocess.TimeoutExpired:
            return None

    def stop(self) -> None:
        """Let it keep its state and end, at the next look."""
        self.stopped = True


def alone(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a run that is nobody's part, whatever has started the process that starts it."""
    return {name: value for name, value in environment.items() if name not in _PLACES}


def changed(folder: Path, sent: dict[str, tuple[int, int]]) -> tuple[dict[str, bytes], list[str]]:
    """The files that are not as they were sent, and the names of all; nothing as long as there is no checkpoint.

    What is told is a whole state: nothing is told of a look during which the checkpoint was replaced.
    """
    try:
        before = _stamp(folder / STATE)
        stamps = {str(path.relative_to(folder)): _stamp(path) for path in kept(folder)}
        files = {name: (folder / name).read_bytes() for name, stamp in stamps.items() if sent.get(name) != stamp}
        if _stamp(folder / STATE) != before:
            return {}, []
    except FileNotFoundError:
        return {}, []
    sent.update(stamps)
    return files, [*stamps]


def kept(folder: Path) -> list[Path]:
    """The files that belong to a run, those aside that are still being written."""
    return [path for path in folder.rglob("*") if path.is_file() and path.name != LOCK and path.name[0] != "."]


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_ino
