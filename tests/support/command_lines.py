"""Command lines carried out by `command_server.py`, and what came of them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

LONG = os.environ.get("SSIL_ATTACK") == "long"
"""Whether the long form of the attack is asked for."""

SEED = os.environ.get("SSIL_ATTACK_SEED", "0")
"""Chooses which bytes are flipped, which command lines are drawn and when commands are killed."""

SECONDS = 60.0
"""After which a command hangs; on a busy machine the slowest takes a tenth of it."""


@dataclass(frozen=True)
class Answer:
    """What a command line led to."""

    code: int | None
    """None if it had to be killed, negative if a signal ended it."""
    out: str
    err: str

    @property
    def hangs(self) -> bool:
        """Whether it did not end in time, or used more of a processor's time than it may."""
        return self.code in (None, -signal.SIGXCPU, -signal.SIGKILL)

    @property
    def crashed(self) -> bool:
        """Whether it ended by an exception that nobody foresaw, or by a signal."""
        return self.code is not None and (self.code < 0 or "Traceback (most recent call last)" in self.err)

    @property
    def refused(self) -> bool:
        """Whether it was refused in one line."""
        lines = self.err.rstrip("\n").split("\n")
        return self.code in (2, 3) and lines[-1].startswith(("error: ", "refused: "))

    @property
    def last(self) -> str:
        """The last line of standard error, as an explanation."""
        return (self.err.strip().splitlines() or [""])[-1][:300]


class CommandLines:
    """A server of commands; `folder` is where they are carried out unless told otherwise."""

    def __init__(self, process: "subprocess.Popen[str]", folder: Path) -> None:
        self.process, self.folder = process, folder

    def __call__(self, *arguments: object, seconds: float = SECONDS, **more: Any) -> Answer:
        """Carry one command out.

        Args:
            arguments: What follows `ssil`.
            seconds: The time limit.
            more: `folder` (the working directory), `stdin` (a file), `file_limit` and `memory_limit` (bytes),
                `processor_limit` (seconds of a processor), `faults` (error numbers of a folder's "flush" and of a
                "lock"), `trace` (a folder whose writes are recorded) and `trace_file` (where to).
        """
        request = {"folder": self.folder, **more, "arguments": [*map(str, arguments)], "seconds": seconds}
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(request, default=str) + "\n")
        self.process.stdin.flush()
        return Answer(**json.loads(self.process.stdout.readline()))


@contextmanager
def command_lines(folder: Path) -> Iterator[CommandLines]:
    """A server whose cache is in `folder`, which is also where its commands are carried out."""
    own = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONHASHSEED": "0"}
    own |= {"SSIL_CACHE": str(folder / "cache"), "MPLBACKEND": "agg", "COLUMNS": "120", "HF_HUB_OFFLINE": "1"}
    script = Path(__file__).with_name("command_server.py")
    environment = os.environ | own | {"PYTHONPATH": os.pathsep.join(sys.path)}
    work = folder / "work"
    work.mkdir(parents=True)
    with subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            yield CommandLines(process, work)
        finally:
            process.kill()


def contents(folder: Path) -> dict[str, str]:
    """Every entry below a folder: what a file holds (its SHA-256), where a link leads, what else there is."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            kind = f"link to {path.readlink()}"
        elif path.is_file():
            kind = sha256(path.read_bytes()).hexdigest()
        else:
            kind = "folder" if path.is_dir() else "special"
        found[str(path.relative_to(folder))] = kind
    return found


COSTS = {"seconds", "seconds_by_phase", "training_seconds", "images_per_second", "peak_memory_mb"}
MOVING = {"provenance", "time", "checksum", *COSTS}
"""Keys whose values differ between two equal runs or updates."""


def still(value: Any) -> Any:
    """Return JSON without what differs between two equal runs or updates."""
    if isinstance(value, Mapping):
        return {key: still(one) for key, one in value.items() if key not in MOVING}
    return [still(one) for one in value] if isinstance(value, list) else value


def run_result(out: Path) -> dict[str, Any]:
    """Return what a run has led to: its record without costs, its predictions, its last checkpoint's tensors."""
    files = contents(out)
    state = json.loads((out / "checkpoint" / "state.json").read_text())["files"]
    tensors = {f"checkpoint/{name}": files.get(f"checkpoint/{name}") for name in state.values()}
    arrays = {name: files[name] for name in files if name.startswith("arrays/task")}
    return {"record.json": still(json.loads((out / "record.json").read_text())), **tensors, **arrays}


def model_result(folder: Path) -> dict[str, Any]:
    """Return what a model directory holds: every file, JSON without times, pages by name (they tell times)."""
    found: dict[str, Any] = contents(folder) | {page.name: "page" for page in folder.glob("*.html")}
    for path in folder.rglob("*.json"):
        found[str(path.relative_to(folder))] = still(json.loads(path.read_text()))
    return found
