"""Methods side by side on one stream: a live table, two pictures, and what one sees in them."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from ssil.benchmark.config import make_config
from ssil.benchmark.record import Record
from ssil.benchmark.runner import run
from ssil.cli.bars import Bars
from ssil.cli.interrupts import saying_how_to_go_on
from ssil.cli.terminal import console, table
from ssil.cli.terminal_tables import summary_of
from ssil.cli.watch import Lines, Reporter
from ssil.learning.metrics import newest_share
from ssil.reporting.figures.confusion import task_confusion
from ssil.reporting.figures.curves import accuracy_curves
from ssil.reporting.figures.style import save


def compare(methods: Sequence[str], settings: Mapping[str, Any], out: Path) -> None:
    """Run all methods; the first is the baseline, the last the one to look at."""
    reporter: Reporter = Board(methods) if sys.stdout.isatty() else Lines()
    with saying_how_to_go_on(out), reporter:
        records = [run(make_config({**settings, "method": name, "out": out / name}), reporter) for name in methods]
    curves = save(accuracy_curves(records), out / "accuracy.png")
    confusion = save(task_confusion([records[0], records[-1]]), out / "confusion.png")
    screen = console()
    screen.print(by_method(dict(zip(methods, records, strict=True))), "", *findings(records), "", sep="\n")
    screen.print(f"pictures: {curves}, {confusion}\nall numbers: ssil show {' '.join(str(out / m) for m in methods)}")


class Board(Bars):
    """A row a method above the bars."""

    def __init__(self, methods: Sequence[str]) -> None:
        super().__init__(runs=len(methods))
        self.methods = methods
        self.rows: dict[str, Record] = {}

    def above(self) -> RenderableType:
        """The results of all methods so far."""
        self.rows[self.methods[self.run - 1]] = self.record
        return by_method(self.rows)


def by_method(records: Mapping[str, Record]) -> Table:
    """Top-1 over all classes seen after each task, a row a method."""
    tasks = max(len(record.task_sizes) for record in records.values())
    made = table("after task", *map(str, range(1, tasks + 1)), "average", title="top-1 accuracy over all classes seen")
    for name, record in records.items():
        values = [f"{task.top1:.1f}" for task in record.tasks]
        average = f"{summary_of(record).average_top1:.1f}" if record.summary else ""
        made.add_row(name, *values, *[""] * (tasks - len(values)), average)
    return made


def findings(records: Sequence[Record]) -> list[str]:
    """What the records show, in sentences; the first record is the baseline, the last the one to look at."""
    return [_accuracies(records), _shares(records[0], records[-1]), _verdict(records)]


def _accuracies(records: Sequence[Record]) -> str:
    ends = [(record.label, summary_of(record)) for record in records]
    parts = [f"{name} {s.average_top1:.1f} % on average and {s.last_top1:.1f} % at the end" for name, s in ends]
    return f"Accuracy: {'; '.join(parts)}."


def _share(record: Record) -> float:
    return newest_share(record.tasks[-1].confusion)


def _shares(baseline: Record, best: Record) -> str:
    images = [sum(row) for row in best.tasks[-1].confusion]
    return (
        f"At the end {_share(baseline):.0f} % of {baseline.label}'s predictions and {_share(best):.0f} % of "
        f"{best.label}'s fall on the newest task, where {100 * images[-1] / sum(images):.0f} % of the images belong."
    )


def _verdict(records: Sequence[Record]) -> str:
    """Whether the last method leans less to the newest task than the first, and is the most accurate of all."""
    baseline, *between, best = records
    rivals = [summary_of(record).average_top1 for record in (baseline, *between)]
    missing = []
    if _share(best) >= _share(baseline):
        missing.append(f"it leans to the newest task no less than {baseline.label}")
    if summary_of(best).average_top1 <= max(rivals):
        missing.append("it is not the most accurate on average")
    if missing:
        return f"{best.label} does not show here what it is made for: {', and '.join(missing)}."
    return f"{best.label} leans less to the newest task than {baseline.label}, and is the most accurate on average."
