"""A process that has imported all of ssil and carries each command out in a fork of itself.

It reads one JSON request per line from standard input and answers each with one JSON line: the exit code (None if the
time limit ended the command, negative for a signal), standard output and standard error. `command_lines.py` is its
client.
"""

import fcntl
import importlib
import json
import os
import pkgutil
import resource
import select
import signal
import stat
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import ssil.cli
from write_trace import WriteTrace

for _found in pkgutil.walk_packages(ssil.__path__, "ssil."):
    if "__main__" not in _found.name:
        importlib.import_module(_found.name)

IDLE = 1.5
"""Seconds without any work after which a command hangs."""


LIMITS = {
    resource.RLIMIT_FSIZE: "file_limit",
    resource.RLIMIT_AS: "memory_limit",
    resource.RLIMIT_CPU: "processor_limit",
}


def break_calls(faults: dict[str, int]) -> None:
    """Let the flush of a folder, or a lock, fail with an error number; on some file systems they do."""
    flush, lock = os.fsync, fcntl.flock

    def fsync(file: Any) -> None:
        if "flush" in faults and stat.S_ISDIR(os.fstat(file).st_mode):
            raise OSError(faults["flush"], os.strerror(faults["flush"]))
        flush(file)

    def flock(file: Any, operation: int) -> None:
        if "lock" in faults:
            raise OSError(faults["lock"], os.strerror(faults["lock"]))
        lock(file, operation)

    os.fsync, fcntl.flock = fsync, flock  # type: ignore[assignment]


def carry_out(request: dict[str, Any], out: int, err: int) -> NoReturn:
    """Run one command in this process, a fork, and end it as `python -m ssil` would end."""
    os.setsid()
    given = os.open(request.get("stdin") or os.devnull, os.O_RDONLY)
    for source, target in ((given, 0), (out, 1), (err, 2)):
        os.dup2(source, target)
    for kind, name in LIMITS.items():
        if request.get(name) is not None:
            resource.setrlimit(kind, (request[name], request[name]))
    os.chdir(request["folder"])
    os.umask(0o022)
    sys.argv = ["ssil", *request["arguments"]]
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, errors="backslashreplace", buffering=1)  # noqa: SIM115
    trace = WriteTrace(Path(request["trace"])) if request.get("trace") else None
    break_calls(request.get("faults", {}))
    code: Any = 1
    try:
        code = ssil.cli.main(request["arguments"])
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except BaseException:
        traceback.print_exc()
    if trace:
        trace.save(Path(request["trace_file"]))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def asleep(process: int) -> str:
    """Return the processor time that a process has used, or "" unless all its threads are asleep."""
    threads = [text.rpartition(") ")[2].split() for text in map(read, Path(f"/proc/{process}/task").glob("*/stat"))]
    states, used = {words[0] for words in threads if words}, [words[11:13] for words in threads]
    return str(used) if states == {"S"} else ""


def has_started_others(session: int) -> bool:
    """Return whether other processes than its first live in a session."""
    status = {int(path.parent.name): read(path) for path in Path("/proc").glob("[0-9]*/stat")}
    words = {process: text.rpartition(") ")[2].split() for process, text in status.items() if process != session}
    return any(one[0] != "Z" and one[3] == str(session) for one in words.values() if one)


def read(path: Path) -> str:
    """Return the text of a file, nothing if it has vanished."""
    with suppress(OSError):
        return path.read_text()
    return ""


def ended(process: int, seconds: float, pipes: dict[int, bytearray]) -> int | None:
    """Return the exit code of a process, or kill it and return None; collect what it writes into pipes.

    It is killed after `seconds`, or when it has been asleep for `IDLE` seconds: nothing will ever wake it, unless it
    waits for a process that it has started.
    """
    end, used, since = time.monotonic() + seconds, "", time.monotonic()
    while time.monotonic() < end and (not used or time.monotonic() < since + IDLE):
        found, status = os.waitpid(process, os.WNOHANG)
        collect(pipes, 0.0 if found else 0.01)
        if found:
            return os.waitstatus_to_exitcode(status)
        if (now := asleep(process)) != used or (now and has_started_others(process)):
            used, since = now, time.monotonic()
    os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return None


def collect(pipes: dict[int, bytearray], seconds: float) -> None:
    """Read all that is in some pipes; wait for it for some seconds."""
    while ready := select.select([*pipes], [], [], seconds)[0]:
        data = {pipe: os.read(pipe, 1 << 16) for pipe in ready}
        for pipe, read in data.items():
            pipes[pipe] += read
        if not all(data.values()):  # the other end is closed
            time.sleep(seconds)
            return
        seconds = 0.0


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Carry out one command in a fork."""
    (out, to_out), (err, to_err) = os.pipe(), os.pipe()
    process = os.fork()
    if not process:
        carry_out(request, to_out, to_err)
    os.close(to_out)
    os.close(to_err)
    pipes = {out: bytearray(), err: bytearray()}
    code = ended(process, request["seconds"], pipes)
    os.close(out)
    os.close(err)
    told, explained = (text.decode(errors="surrogateescape") for text in pipes.values())
    return {"code": code, "out": told, "err": explained}


def main() -> None:
    """Answer requests until standard input ends."""
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
