"""A worker on a node of a cluster, which carries out one run. The module is sent there, so it imports only Python's."""

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
"""Seconds between two checks of the run."""
STATE = "checkpoint/state.json"
"""The file that makes a checkpoint valid: the files that it names are written before it, and removed after it."""
LOCK = "lock"

_RANK_VARIABLES = ("RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS")
"""The environment variables by which torchrun and srun tell a process its rank."""

_DIE_WITH_PARENT = """import ctypes, os, signal, sys
prctl = getattr(ctypes.CDLL(None), "prctl", None)
prctl and prctl(1, signal.SIGKILL)
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
os.execv(sys.executable, [sys.executable, "-m", *sys.argv[1:]])"""
"""Run a module in a process that Linux kills when its parent dies; SIGINT, which Ray blocks, reaches it."""


class WorkerReport(NamedTuple):
    """What has changed in a run since the last report."""

    lines: Sequence[str] = ()
    """New lines of the run's output."""
    files: Mapping[str, bytes] = {}
    """Files that are new or have changed, by name."""
    names: Sequence[str] = ()
    """The names of all files."""
    code: int | None = None
    """The exit code, once the run has ended."""
    reason: str = ""
    """The last line of the run's errors."""


class Worker:
    """Carries out one run in a folder on the disk of its node."""

    stopped = False

    def ready(self) -> None:
        """Return as soon as the cluster has resources for the run."""

    def begin(self, command: Sequence[str], here: str, files: Mapping[str, bytes]) -> WorkerReport:
        """Start the run's process in a new folder with these files; relative paths in the command start at `here`."""
        self.folder = Path(mkdtemp(prefix="ssil-"))
        self.sent, self.rest = dict[str, tuple[int, int]](), ""
        for name, content in files.items():
            path = self.folder / "run" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        with (self.folder / "output").open("w") as output, (self.folder / "errors").open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _DIE_WITH_PARENT, *command[:-1], str(self.folder / "run"), "--json"],
                stdout=output,
                stderr=errors,
                cwd=here if Path(here).is_dir() else None,
                env=without_ranks(os.environ),
                start_new_session=True,
            )
        self.output = (self.folder / "output").open()
        return WorkerReport()

    def report(self) -> WorkerReport:
        """Wait until something has changed, and return it. The last report, with an exit code, removes the folder."""
        while True:
            if self.stopped:
                self.process.send_signal(signal.SIGINT)
                self.stopped = False
            code = self._exit_code()
            *lines, self.rest = (self.rest + self.output.read()).split("\n")
            files, names = changed_files(self.folder / "run", self.sent)
            if code is not None:
                errors = (self.folder / "errors").read_text().strip().splitlines()
                shutil.rmtree(self.folder)
                return WorkerReport(lines, files, names, code, (errors or [""])[-1])
            if lines or files:
                return WorkerReport(lines, files, names)

    def _exit_code(self) -> int | None:
        try:
            return self.process.wait(PAUSE)
        except subprocess.TimeoutExpired:
            return None

    def stop(self) -> None:
        """Let the run write a checkpoint and end, at the next check."""
        self.stopped = True


def without_ranks(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the rank variables of torchrun and Slurm, which would make a run wait for others.

    >>> without_ranks({"RANK": "1", "HOME": "/home/me"})
    {'HOME': '/home/me'}
    """
    return {name: value for name, value in environment.items() if name not in _RANK_VARIABLES}


def changed_files(folder: Path, sent: dict[str, tuple[int, int]]) -> tuple[dict[str, bytes], list[str]]:
    """Return the files that have changed since they were sent, and the names of all files; update `sent`.

    Both are empty as long as there is no checkpoint, or if the checkpoint was replaced meanwhile: together the files
    must be one whole state.
    """
    try:
        before = _stamp(folder / STATE)
        stamps = {str(path.relative_to(folder)): _stamp(path) for path in run_files(folder)}
        files = {name: (folder / name).read_bytes() for name, stamp in stamps.items() if sent.get(name) != stamp}
        if _stamp(folder / STATE) != before:
            return {}, []
    except FileNotFoundError:
        return {}, []
    sent.update(stamps)
    return files, [*stamps]


def run_files(folder: Path) -> list[Path]:
    """Return the files of a run, without the lock and without unfinished ones."""
    return [path for path in folder.rglob("*") if path.is_file() and path.name != LOCK and path.name[0] != "."]


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_ino
