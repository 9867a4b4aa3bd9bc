"""Runs that are killed, and go on: each in a process of its own, forked from this one, which has torch ready.

    PYTHONPATH=tests/support python tests/e2e/killed.py FOLDER < {"name": {"settings": {}, "kills": [["write", 3]]}}

prints, for each name, how many of the kills took place and what differs in the end from a run that nobody killed.
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch

import tiny_runs
from kill_points import Fuse, kill
from ssil.benchmark.record import read_record
from ssil.benchmark.runner import RunObserver, run
from ssil.learning.task import ProgressReport


class Ticking(RunObserver):
    """Tells a fuse of every step."""

    def __init__(self, fuse: Fuse | None) -> None:
        self.fuse = fuse

    def progress(self, task: int, report: ProgressReport) -> None:
        if self.fuse:
            self.fuse.tick("step")


def differences(one: Path, other: Path) -> list[str]:
    """What two directories don't share, bit for bit, times aside."""
    if not (one / "checkpoint" / "state.json").exists():
        return ["checkpoint"]
    these, those = tiny_runs.tensors(one), tiny_runs.tensors(other)
    unequal = [name for name in these if name not in those or not torch.equal(these[name], those[name])]
    missing = [name for name in those if name not in these]
    pairs = [(file, other / "arrays" / file.name) for file in (one / "arrays").iterdir()]
    arrays = [mine.name for mine, theirs in pairs if mine.read_bytes() != theirs.read_bytes()]
    record = [] if tiny_runs.timeless(read_record(one)) == tiny_runs.timeless(read_record(other)) else ["record"]
    return unequal + missing + arrays + record


def outcome(folder: Path, out: Path, settings: dict[str, Any], kills: list[tuple[str, float]]) -> dict[str, Any]:
    """One case: the run that nobody killed (made once), the kills, and the rest of the run."""
    whole = folder / "-".join(settings.values())
    settings = settings | {"dataset": folder / "patterns.npz"}
    if not whole.exists():
        run(tiny_runs.config(**settings, out=whole))
    try:
        config = tiny_runs.config(**settings, out=out)
        count = sum(kill(lambda fuse: run(config, Ticking(fuse)), event, when) for event, when in kills)
        run(config)
    except Exception as error:
        return {"error": repr(error)}
    return {"kills": count, "differences": differences(out, whole)}


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    tiny_runs.patterns(folder / "patterns.npz", [6] * 6)
    cases = enumerate(json.load(sys.stdin).items())
    json.dump({name: outcome(folder, folder / f"killed-{n}", **case) for n, (name, case) in cases}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
