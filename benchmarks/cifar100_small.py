"""The small CIFAR-100 stream: run what is missing, then print the table of docs/results/cifar100-small.md.

python benchmarks/cifar100_small.py --runs runs/cifar100-small [--seeds 3] [--jobs 2] [--table-only]

Runs that are done are not run again; one that was stopped goes on. Needs CIFAR-100 (see docs/data.md).
"""

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import mean, stdev
from typing import NamedTuple

from ssil.errors import UserError
from ssil.metrics import newest_share
from ssil.record import Record, read_record

CONFIG = "configs/cifar100-small.toml"
TAU_SQ = "--option kd_tau_sq=true"


class Row(NamedTuple):
    """A row of the table: its directory's name, the flags that make it, and what an independent script gave once."""

    name: str
    flags: str
    script: str = ""
    seeds: int = 3

    def command(self, seed: int, runs: Path) -> str:
        """What one would type."""
        return f"ssil run {CONFIG} {self.flags} --seed {seed} --threads 1 --out {runs / self.name}-{seed}"


ROWS = (
    Row("ssil", "--method ssil", "28.5 / 64.0 / 23.2"),
    Row("ft", "--method ft", "22.8 / 52.4 / 11.9"),
    Row("ce_gkd", "--method ce_gkd", "23.4 / 52.4 / 13.9"),
    Row("er", "--method er", "20.7 / 47.4 / 9.1"),
    Row("ce_tkd", "--method ce_tkd", "23.5 / 54.5 / 13.9"),
    Row("ce_ss-replay", "--method ce_ss --option batches=replay", "28.1 / 61.6 / 20.5"),
    Row("ssil-k4", f"--method ssil {TAU_SQ}", "26.7 / 60.3 / 19.4"),
    Row("ce_tkd-k4", f"--method ce_tkd {TAU_SQ}", "21.6 / 49.8 / 9.8"),
    Row("ce_gkd-k4", f"--method ce_gkd {TAU_SQ}", "23.3 / 49.7 / 14.0"),
    Row("ssil-k4-lrt", f"--method ssil {TAU_SQ} --lr-by-task", "24.9 / 56.5 / 14.7"),
    Row("joint", "--method joint", seeds=1),
)


def finished(row: Row, runs: Path) -> list[Record]:
    """The finished runs of a row."""
    records = []
    for seed in range(row.seeds):
        try:
            record = read_record(runs / f"{row.name}-{seed}")
        except UserError:
            continue
        if record.summary:
            records.append(record)
    return records


def spread(values: list[float]) -> str:
    return f"{mean(values):.1f}" + (f" ± {stdev(values):.1f}" if len(values) > 1 else "")


def line(row: Row, records: list[Record]) -> str:
    """A row in Markdown: means and deviations over the seeds."""
    summaries = [record.summary for record in records if record.summary]
    newest = [newest_share(record.tasks[-1].confusion) for record in records]
    cells = [
        row.name,
        str(len(records)),
        spread([summary.average_top1 for summary in summaries]),
        spread([summary.average_top5 for summary in summaries]),
        spread([summary.last_top1 for summary in summaries]),
        spread(newest),
        row.script,
        f"`{row.flags}`",
    ]
    return "| " + " | ".join(cells) + " |"


def execute(command: str) -> None:
    print(f"$ {command}", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", *command.split()], check=True, stdout=sys.stderr)


def print_table(runs: Path) -> None:
    print(
        "| run | seeds | average top-1 | average top-5 | last top-1 | on the newest task, % | script, 1 run | flags |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for row in ROWS:
        if records := finished(row, runs):
            print(line(row, records))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs/cifar100-small"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="runs at once, one thread each")
    parser.add_argument("--table-only", action="store_true")
    arguments = parser.parse_args()
    if not arguments.table_only:
        todo = [
            row.command(seed, arguments.runs) for seed in range(arguments.seeds) for row in ROWS if seed < row.seeds
        ]
        with ThreadPoolExecutor(arguments.jobs) as pool:
            list(pool.map(execute, todo))
    print_table(arguments.runs)


if __name__ == "__main__":
    main()
