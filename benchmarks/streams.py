"""Streams that many methods learn: run what is missing, then print the stream's table of docs/results.

python benchmarks/streams.py cifar100-small [--runs runs/cifar100-small] [--jobs 2] [--table-only]
python benchmarks/streams.py cifar100-methods
python benchmarks/streams.py glyphs-10
python benchmarks/streams.py glyphs-largebase
python benchmarks/streams.py glyphs-growing

Runs that are done are not run again; one that was stopped goes on. Each takes one thread. CIFAR-100 is needed for two
of them (see docs/data.md).
"""

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

from ssil.errors import UserError
from ssil.metrics import newest_share
from ssil.record import Record, read_record

TAU_SQ = "--option kd_tau_sq=true"


@dataclass(frozen=True)
class Row:
    """A row of a table: its name, the flags that make it, or the row whose training it shares as a scorer."""

    name: str
    flags: str = ""
    rides: str = ""
    script: str = ""
    """What an independent script gave once."""
    seeds: int | None = None

    def folder(self, runs: Path, seed: int) -> Path:
        """Where its record is."""
        return (
            runs / f"{self.rides}-{seed}" / self.name.rpartition(" ")[2] if self.rides else runs / f"{self.name}-{seed}"
        )


@dataclass(frozen=True)
class Stream:
    """A configuration and the rows of its table."""

    config: str
    rows: tuple[Row, ...]
    seeds: int = 3
    flags: str = ""

    def command(self, row: Row, seed: int, runs: Path) -> str:
        """What one would type."""
        parts = (
            "ssil run",
            self.config,
            self.flags,
            row.flags,
            f"--seed {seed} --threads 1 --out {row.folder(runs, seed)}",
        )
        return " ".join(filter(None, parts))


ABLATIONS = (
    Row("ssil", "--method ssil", script="28.5 / 64.0 / 23.2"),
    Row("ft", "--method ft", script="22.8 / 52.4 / 11.9"),
    Row("ce_gkd", "--method ce_gkd", script="23.4 / 52.4 / 13.9"),
    Row("er", "--method er", script="20.7 / 47.4 / 9.1"),
    Row("ce_tkd", "--method ce_tkd", script="23.5 / 54.5 / 13.9"),
    Row("ce_ss-replay", "--method ce_ss --option batches=replay", script="28.1 / 61.6 / 20.5"),
    Row("ssil-k4", f"--method ssil {TAU_SQ}", script="26.7 / 60.3 / 19.4"),
    Row("ce_tkd-k4", f"--method ce_tkd {TAU_SQ}", script="21.6 / 49.8 / 9.8"),
    Row("ce_gkd-k4", f"--method ce_gkd {TAU_SQ}", script="23.3 / 49.7 / 14.0"),
    Row("ssil-k4-lrt", f"--method ssil {TAU_SQ} --lr-by-task", script="24.9 / 56.5 / 14.7"),
    Row("joint", "--method joint", seeds=1),
)
BIAS = "--option bias_epochs=200 --option bias_lr=0.1 --option bias_momentum=0.9 --option beta_penalty=0.1"
"""BiC's own paper's: at the rate of SS-IL's supplement, so few steps would correct nothing."""

METHODS = (
    Row("ft", "--method ft,il2m,scail"),
    Row("il2m", rides="ft"),
    Row("scail", rides="ft"),
    Row("icarl", "--method icarl"),
    Row("icarl cnn", rides="icarl"),
    Row("eeil", "--method eeil"),
    Row("bic", f"--method bic {BIAS}"),
    Row("wa", "--method wa"),
    Row("uw", "--method uw"),
    Row("lucir", "--method lucir"),
    Row("podnet", "--method podnet"),
    Row("podnet-b20", "--method podnet --option balanced_epochs=20"),
    Row("ssil", "--method ssil"),
)
OTHERS = (Row("lwf", "--method lwf"), Row("er", "--method er"))
STREAMS = {
    "cifar100-small": Stream("configs/cifar100-small.toml", ABLATIONS),
    "cifar100-methods": Stream("configs/cifar100-small.toml", METHODS, seeds=1),
    "glyphs-10": Stream("configs/glyphs-10.toml", (*METHODS, *OTHERS)),
    "glyphs-largebase": Stream("configs/glyphs-10.toml", (*METHODS, *OTHERS), 1, "--large-base --tasks 5"),
    "glyphs-growing": Stream("configs/glyphs-10.toml", (*METHODS, *OTHERS), 1, "--memory-per-class 2"),
}
HEADER = ("run", "seeds", "average top-1", "average top-5", "last top-1", "on the newest task, %", "seconds")


def finished(stream: Stream, row: Row, runs: Path) -> list[Record]:
    """The finished runs of a row."""
    records = []
    for seed in range(row.seeds or stream.seeds):
        try:
            record = read_record(row.folder(runs, seed))
        except UserError:
            continue
        if record.summary:
            records.append(record)
    return records


def spread(values: list[float], digits: int = 1) -> str:
    return f"{mean(values):.{digits}f}" + (f" ± {stdev(values):.{digits}f}" if len(values) > 1 else "")


def line(row: Row, records: list[Record], scripted: bool) -> str:
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
        spread([summary.seconds for summary in summaries], 0),
        *([row.script] if scripted else []),
        f"`{row.flags}`" if row.flags else f"a scorer of {row.rides}'s training",
    ]
    return "| " + " | ".join(cells) + " |"


def print_table(stream: Stream, runs: Path) -> None:
    scripted = any(row.script for row in stream.rows)
    titles = [*HEADER, *(["script, 1 run"] if scripted else []), "flags"]
    print(f"| {' | '.join(titles)} |", "|---" * len(titles) + "|", sep="\n")
    for row in stream.rows:
        if records := finished(stream, row, runs):
            print(line(row, records, scripted))


def execute(command: str) -> None:
    print(f"$ {command}", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", *command.split()], check=True, stdout=sys.stderr)


def run_missing(stream: Stream, runs: Path, jobs: int) -> None:
    todo = [
        stream.command(row, seed, runs)
        for seed in range(stream.seeds)
        for row in stream.rows
        if not row.rides and seed < (row.seeds or stream.seeds)
    ]
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(execute, todo))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stream", choices=STREAMS)
    parser.add_argument("--runs", type=Path, help="where the runs are (default: runs/STREAM)")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once, one thread each")
    parser.add_argument("--table-only", action="store_true")
    arguments = parser.parse_args()
    stream, runs = STREAMS[arguments.stream], arguments.runs or Path("runs") / arguments.stream
    if not arguments.table_only:
        run_missing(stream, runs, arguments.jobs)
    print_table(stream, runs)


if __name__ == "__main__":
    main()
