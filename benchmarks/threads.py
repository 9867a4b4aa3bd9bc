"""Training speed by how threads wait for each other (GOMP_SPINCOUNT), on its own and beside busy processes.

python benchmarks/threads.py [--busy 0 2] [--rounds 5] [--seconds 6] [--threads 2]

Each line of the printed table is the median over the rounds of images per second of an SS-IL training step (resnet32,
32 pixels, 128 new and 32 replayed images, a teacher), in a fresh process for each setting and round; the settings take
turns within a round, so that other load on the machine meets them alike.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median

SETTINGS: dict[str, dict[str, str]] = {
    "libgomp's default": {"GOMP_SPINCOUNT": "300000"},
    "GOMP_SPINCOUNT=10000": {"GOMP_SPINCOUNT": "10000"},
    "GOMP_SPINCOUNT=1000 (ours)": {"GOMP_SPINCOUNT": "1000"},
    "GOMP_SPINCOUNT=0": {"GOMP_SPINCOUNT": "0"},
    "one thread": {"OMP_NUM_THREADS": "1"},
}


def images_per_second(seconds: float) -> float:
    """Train for `seconds` in this process after one step that warms up."""
    from step import NEW, REPLAYED, engine_steps, trainer

    steps = engine_steps(trainer(tasks=10, classes=100))
    next(steps)
    start, done = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        next(steps)
        done += NEW + REPLAYED
    return done / (time.perf_counter() - start)


def measured(setting: dict[str, str], threads: int, seconds: float) -> float:
    """Return the images per second of a fresh process."""
    others = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    command = [sys.executable, __file__, "--child", "--seconds", str(seconds)]
    environment = others | {"OMP_NUM_THREADS": str(threads)} | setting
    return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Run `count` processes that compute without end beside the block."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def compare(busy: int, rounds: int, threads: int, seconds: float) -> dict[str, float]:
    """Return the median images per second of each setting beside `busy` processes."""
    with busy_processes(busy):
        table = [{name: measured(one, threads, seconds) for name, one in SETTINGS.items()} for _ in range(rounds)]
    return {name: median(row[name] for row in table) for name in SETTINGS}


def report(columns: Sequence[int], arguments: argparse.Namespace) -> None:
    """Print a Markdown table: one line per setting, one column per number of busy processes."""
    load = os.getloadavg()[0]
    results = [compare(busy, arguments.rounds, arguments.threads, arguments.seconds) for busy in columns]
    print(f"{arguments.threads} threads, {os.cpu_count()} cores, {arguments.rounds} rounds; load before: {load:.1f}\n")
    print("| | " + " | ".join(f"beside {busy} busy processes" if busy else "alone" for busy in columns) + " |")
    print("|---|" + "---|" * len(columns))
    for name in SETTINGS:
        print(f"| {name} | " + " | ".join(f"{result[name]:.0f}" for result in results) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--busy", type=int, nargs="+", default=[0, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(images_per_second(arguments.seconds))
    else:
        report(arguments.busy, arguments)


if __name__ == "__main__":
    main()
