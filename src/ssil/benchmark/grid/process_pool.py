"""The cells of a grid run by several processes at once; one that fails stops no other."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from typing import Any

from ssil.benchmark.config import override
from ssil.benchmark.grid.cells import Cell
from ssil.benchmark.grid.cluster_worker import without_ranks
from ssil.core.cpu import usable_cores


@dataclass(frozen=True)
class Outcome:
    """How a cell's process ended: its exit code and, if it failed, the last line of its errors."""

    cell: Cell
    code: int
    reason: str = ""


class GridObserver:
    """Callbacks of a grid, from one thread at a time. These do nothing; subclasses override those that they need."""

    def started(self, cell: Cell) -> None:
        """The process of a cell begins."""

    def learnt(self, cell: Cell, task: dict[str, Any]) -> None:
        """A task is finished, now or before the process continued the run: its record."""

    def lost(self, cell: Cell) -> None:
        """The process died with its node, or was killed; it is started again from its last checkpoint."""

    def ended(self, outcome: Outcome) -> None:
        """The process of a cell has ended."""


def run_cells(cells: Sequence[Cell], root: Path, jobs: int = 1, observer: GridObserver | None = None) -> list[Outcome]:
    """Run the cells, `jobs` at once, each in a process with an equal share of the cores.

    On an interrupt no further cell is started; running ones write a checkpoint and are waited for.
    """
    processes = _CellProcesses(root, max(1, usable_cores() // jobs), observer or GridObserver())
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(processes.run, cell) for cell in cells]
        try:
            return [outcome for future in as_completed(futures) if (outcome := future.result())]
        except KeyboardInterrupt:
            processes.stop()
            raise


def task_records(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the finished tasks in the output of `ssil run --json`; other lines, printed by a method, are skipped."""
    for line in lines:
        with suppress(ValueError):
            event = json.loads(line)
            if isinstance(event, dict) and event.get("event") == "task":
                yield event


@dataclass
class _CellProcesses:
    root: Path
    threads: int
    observer: GridObserver
    lock: Lock = field(default_factory=Lock)
    stopped: bool = False
    running: "set[subprocess.Popen[str]]" = field(default_factory=set)

    def run(self, cell: Cell) -> Outcome | None:
        """Run a cell's process to its end; return None if it was not started because of a stop."""
        with TemporaryFile("w+") as errors:
            with self.lock:
                if self.stopped:
                    return None
                self.observer.started(cell)
                process = self._start(cell, errors.fileno())
                self.running.add(process)
            self._follow(cell, process)
            errors.seek(0)
            last = (errors.read().strip().splitlines() or [""])[-1].removeprefix("error: ")
        outcome = Outcome(cell, process.returncode, last if process.returncode else "")
        with self.lock:
            self.running.remove(process)
            self.observer.ended(outcome)
        return outcome

    def _start(self, cell: Cell, errors: int) -> "subprocess.Popen[str]":
        """Start the process in a session of its own, so that Ctrl-C reaches it only through `stop`."""
        settings = override({"threads": self.threads}, cell.settings)
        command = replace(cell, settings=settings).command(self.root)
        return subprocess.Popen(
            [sys.executable, "-m", *command, "--json"],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={"OMP_NUM_THREADS": str(settings["threads"])} | without_ranks(os.environ),
            start_new_session=True,
        )

    def _follow(self, cell: Cell, process: "subprocess.Popen[str]") -> None:
        with process as running:
            for task in task_records(running.stdout or ()):
                with self.lock:
                    self.observer.learnt(cell, task)

    def stop(self) -> None:
        """Start no more cells; let running ones write a checkpoint and end."""
        with self.lock:
            self.stopped = True
            for process in self.running:
                process.send_signal(signal.SIGINT)
