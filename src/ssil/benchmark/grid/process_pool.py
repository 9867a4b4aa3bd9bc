"""Runs carried out by several processes at once; one that fails stops no other."""

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
from ssil.benchmark.grid.cluster_worker import alone


@dataclass(frozen=True)
class Outcome:
    """How a cell's process ended: its exit code, and the last words of one that failed."""

    cell: Cell
    code: int
    reason: str = ""


class GridObserver:
    """Told of what happens to the cells, from one thread at a time."""

    def started(self, cell: Cell) -> None:
        """Its process begins."""

    def learnt(self, cell: Cell, task: dict[str, Any]) -> None:
        """A task is done, now or before the process went on."""

    def lost(self, cell: Cell) -> None:
        """Its process died with its node, or was killed; it is begun again, from its last checkpoint on."""

    def ended(self, outcome: Outcome) -> None:
        """Its process is gone."""


def carry_out(cells: Sequence[Cell], root: Path, jobs: int = 1, observer: GridObserver | None = None) -> list[Outcome]:
    """Run the cells, so many at once, each in a process that takes its share of the cores.

    On an interrupt no further one is begun; those at work keep their state, and are waited for.
    """
    crew = _Crew(root, max(1, (os.cpu_count() or 1) // jobs), observer or GridObserver())
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(crew.work, cell) for cell in cells]
        try:
            return [outcome for future in as_completed(futures) if (outcome := future.result())]
        except KeyboardInterrupt:
            crew.stop()
            raise


def tasks(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Those that a run says it has done; what others print, such as a method, is passed over."""
    for line in lines:
        with suppress(ValueError):
            said = json.loads(line)
            if isinstance(said, dict) and said.get("event") == "task":
                yield said


@dataclass
class _Crew:
    root: Path
    threads: int
    observer: GridObserver
    lock: Lock = field(default_factory=Lock)
    stopped: bool = False
    at_work: "set[subprocess.Popen[str]]" = field(default_factory=set)

    def work(self, cell: Cell) -> Outcome | None:
        with TemporaryFile("w+") as words:
            with self.lock:
                if self.stopped:
                    return None
                self.observer.started(cell)
                process = self._begin(cell, words.fileno())
                self.at_work.add(process)
            self._follow(cell, process)
            words.seek(0)
            last = (words.read().strip().splitlines() or [""])[-1].removeprefix("error: ")
        outcome = Outcome(cell, process.returncode, last if process.returncode else "")
        with self.lock:
            self.at_work.remove(process)
            self.observer.ended(outcome)
        return outcome

    def _begin(self, cell: Cell, errors: int) -> "subprocess.Popen[str]":
        """In a session of its own: Ctrl-C reaches it through `stop` alone."""
        settings = override({"threads": self.threads}, cell.settings)
        command = replace(cell, settings=settings).command(self.root)
        return subprocess.Popen(
            [sys.executable, "-m", *command, "--json"],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={"OMP_NUM_THREADS": str(settings["threads"])} | alone(os.environ),
            start_new_session=True,
        )

    def _follow(self, cell: Cell, process: "subprocess.Popen[str]") -> None:
        with process as running:
            for task in tasks(running.stdout or ()):
                with self.lock:
                    self.observer.learnt(cell, task)

    def stop(self) -> None:
        """Begin no more; let those at work keep their state and end."""
        with self.lock:
            self.stopped = True
            for process in self.at_work:
                process.send_signal(signal.SIGINT)
