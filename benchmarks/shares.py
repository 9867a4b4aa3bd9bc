"""What share of a short run's wall clock each of its parts takes, for one or several checkouts in turn.

python benchmarks/shares.py --cifar DIR [--checkouts OLD .] [--methods ssil icarl] [--threads 2] [--rounds 3]

The run: CIFAR-100, 2 tasks of 20 classes, 100 training images a class, all test images, 1 epoch, resnet32, with a run
directory. Each is a fresh process, `ssil run` with clocks around the functions of `PARTS`. The checkouts take turns
within a round, and the median over the rounds counts: seconds of wall clock, of CPU time, and the share of the wall
clock. DIR is the folder that holds `cifar-100-binary`.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

PARTS = {
    "data, method and devices": ("ssil.benchmark.runner:set_up",),
    "training": ("ssil.learning.trainer:Trainer.run",),
    "fitting the scorers": ("ssil.learning.engine:_fit",),
    "evaluation": ("ssil.benchmark.runner:predict", "ssil.benchmark.runner:teacher_ratios"),
    "choosing exemplars": ("ssil.benchmark.runner:_TaskRunner._choose_exemplars",),
    "files": ("ssil.benchmark.run_directory:RunDirectory.write_task",),
}
"""By part, the functions that make it up; none of them calls another."""
RUN = "run --dataset cifar100 --classes 40 --tasks 2 --train-per-class 100 --epochs 1 --backbone resnet32 --json"
MORE = {"icarl": ["--selection", "herding"]}
IMPORTS, OTHER = "start of Python and imports", "other"

Seconds = tuple[float, float]
"""Wall clock and CPU time."""


def now() -> Seconds:
    """Return the wall clock, whose origin all processes share, and the CPU time of this process."""
    return time.clock_gettime(time.CLOCK_MONOTONIC), time.process_time()


class Clocks:
    """The seconds that this process has spent in each part."""

    def __init__(self) -> None:
        self.seconds: dict[str, Seconds] = {}

    def add(self, part: str, start: Seconds) -> None:
        """Add the time since `start` to a part."""
        self.seconds[part] = tuple(  # type: ignore[assignment]
            old + end - begin for old, end, begin in zip(self.seconds.get(part, (0.0, 0.0)), now(), start, strict=True)
        )

    def wrap(self, part: str, place: str) -> None:
        """Measure every call of the function at "module:name"."""
        module, _, path = place.partition(":")
        *parents, name = path.split(".")
        owner: Any = import_module(module)
        for parent in parents:
            owner = getattr(owner, parent)
        inner: Callable[..., Any] = getattr(owner, name)

        def timed(*args: Any, **kwargs: Any) -> Any:
            start = now()
            try:
                return inner(*args, **kwargs)
            finally:
                self.add(part, start)

        setattr(owner, name, timed)


def measure_this_process(started: float, parts: Path, arguments: Sequence[str]) -> None:
    """Carry out an ssil command with clocks, and write the seconds of each part to a file."""
    from ssil.cli import main as command

    clocks = Clocks()
    for part, places in PARTS.items():
        for place in places:
            clocks.wrap(part, place)
    clocks.add(IMPORTS, (started, 0.0))
    sys.argv = ["ssil", *arguments]
    try:
        command()
    finally:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        parts.write_text(json.dumps([clocks.seconds, peak]))


class Measured(NamedTuple):
    """A run in a process of its own."""

    parts: dict[str, Seconds]
    """With all of it under "whole"."""
    peak: float
    """Megabytes of memory."""


def measured(checkout: Path, method: str, threads: int, data: Path) -> Measured:
    """Return the measures of a fresh process."""
    environment = os.environ | {
        "PYTHONPATH": str(checkout.resolve() / "src"),
        "OMP_NUM_THREADS": str(threads),
        "SSIL_DATA": str(data.resolve()),
    }
    with TemporaryDirectory() as folder:
        started, before = now()[0], resource.getrusage(resource.RUSAGE_CHILDREN)
        arguments = [*RUN.split(), *MORE.get(method, ()), "--method", method, "--threads", str(threads), "--out", "run"]
        command = [sys.executable, str(Path(__file__).resolve()), "--child", str(started), "parts.json", *arguments]
        subprocess.run(command, env=environment, cwd=folder, check=True, stdout=subprocess.PIPE)
        wall, after = now()[0] - started, resource.getrusage(resource.RUSAGE_CHILDREN)
        parts, peak = json.loads((Path(folder) / "parts.json").read_text())
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    known = [sum(column) for column in zip(*parts.values(), strict=True)]
    return Measured({**parts, OTHER: (wall - known[0], cpu - known[1]), "whole": (wall, cpu)}, peak)


def report(names: Sequence[str], rows: Sequence[Sequence[Measured]]) -> None:
    """Print a Markdown table: one line per part, three columns per checkout."""
    print("| | " + " | ".join(f"{name}: seconds | CPU seconds | share" for name in names) + " |")
    print("|---|" + "---|---|---|" * len(names))
    for part in (IMPORTS, *PARTS, OTHER, "whole"):
        cells = []
        for runs in rows:
            found = [one.parts.get(part, (0.0, 0.0)) for one in runs]
            share = median(wall / one.parts["whole"][0] for (wall, _), one in zip(found, runs, strict=True))
            cells.append(f"{median(w for w, _ in found):.1f} | {median(c for _, c in found):.1f} | {share:.0%}")
        print(f"| {part} | " + " | ".join(cells) + " |")
    print(f"peak memory: {', '.join(f'{median(one.peak for one in runs):.0f} MB' for runs in rows)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cifar", type=Path, required=True)
    parser.add_argument("--checkouts", type=Path, nargs="+", default=[Path()])
    parser.add_argument("--methods", nargs="+", default=["ssil", "icarl"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    for method in arguments.methods:
        load = os.getloadavg()[0]
        rounds = [
            [measured(checkout, method, arguments.threads, arguments.cifar) for checkout in arguments.checkouts]
            for _ in range(arguments.rounds)
        ]
        print(f"\n{method}, {arguments.threads} threads, {arguments.rounds} rounds; load before: {load:.1f}\n")
        report([str(checkout) for checkout in arguments.checkouts], list(zip(*rounds, strict=True)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        measure_this_process(float(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
    else:
        main()
