"""`ssil show`: the results of runs as tables or JSON lines."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from json import dumps, loads
from math import isnan
from os.path import commonpath
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table

from ssil.benchmark.record import Record, read_predictions, read_record
from ssil.cli.run_tables import run_table, run_title, summary_of, task_table
from ssil.cli.terminal import Json, console, json_line, plain, printable, table
from ssil.core.errors import UserError
from ssil.learning.metrics import Evaluation, backward_transfer, evaluate_run, newest_share

app = App(
    name="show",
    help_epilogue="""Examples:
  ssil show runs/first
  ssil show runs/first --metrics
  ssil show runs/* --json""",
)

LEGEND = """top-1, top-5: accuracy over all classes seen in %, averaged over the tasks
task known: top-1 where the best class is sought in the image's own task alone
last: top-1 after the last task; newest: share of predictions on the newest task
forgets: by how many points a task falls below its best accuracy, on average
MB: of model, exemplars and what is stored with them, after the last task
images, steps, seconds: seen, of the optimiser, and of training, over all tasks"""
HARDEST = 5
"""How many of the classes with the lowest accuracies are named."""


@app.default
def show(
    directory: Annotated[Path, Parameter(help="the --out directory of a run")],
    /,
    *more: Annotated[Path, Parameter(help="directories of further runs")],
    metrics: Annotated[
        bool,
        Parameter(negative="", show_default=False, help="add intervals, calibration and more, from arrays/"),
    ] = False,
    json: Json = False,
) -> None:
    """Show the results of runs, one for each scorer of a run; last a table that compares them."""
    folders = [folder for path in (directory, *more) for folder in (path, *_scorer_folders(path))]
    records = {str(folder): read_record(folder) for folder in folders}
    if json:
        for name, record in records.items():
            json_line(run=name, **_json(record), **({"metrics": _json_metrics(name, record)} if metrics else {}))
    else:
        _print_tables(records, metrics)


def _scorer_folders(directory: Path) -> list[Path]:
    """Return the directories of a run's further scorers."""
    return sorted(file.parent for file in directory.glob("*/record.json"))


def _json(record: Record) -> dict[str, object]:
    done = record.tasks
    headline = {**summary_of(record).model_dump(), "newest_share": newest_share(done[-1].confusion)} if done else {}
    return {"finished": record.summary is not None, **headline, "record": record.model_dump(mode="json")}


def _json_metrics(folder: str, record: Record) -> dict[str, object] | None:
    """Return the metrics of the predictions, with null for NaN; None if there are no predictions."""
    try:
        tasks = [asdict(evaluation) for evaluation in _evaluations(folder, record)]
    except UserError as error:
        print(printable(error), file=sys.stderr)
        return None
    transfer = {"backward_transfer": _backward_transfer(record)} if tasks else {}
    return {**transfer, "tasks": loads(dumps(tasks), parse_constant=lambda _: None)}


def _evaluations(folder: str, record: Record) -> list[Evaluation]:
    return evaluate_run([read_predictions(folder, task.task) for task in record.tasks], record.task_sizes)


def _backward_transfer(record: Record) -> float:
    return backward_transfer([task.task_top1 for task in record.tasks])


def _print_tables(records: Mapping[str, Record], metrics: bool) -> None:
    screen = console()
    for folder, record in records.items():
        screen.print(f"[bold]{plain(folder)}[/]: {plain(run_title(record))}")
        if record.tasks:
            heading = f"predicted task after task {len(record.tasks)}, in % of each true task's images"
            screen.print(task_table(record), heading, _confusion_table(record), sep="\n")
        if record.tasks and metrics:
            _print_metrics(screen, folder, record)
        screen.print()
    screen.print(run_table(_shortened(records)), LEGEND, sep="\n")


def _shortened(records: Mapping[str, Record]) -> dict[str, Record]:
    """Return the records by their paths relative to the directory that they share."""
    shared = commonpath([Path(name).absolute().parent for name in records])
    return {str(Path(name).absolute().relative_to(shared)): record for name, record in records.items()}


def _confusion_table(record: Record) -> Table:
    """Return true task by predicted task after the last finished task, each row in percent."""
    numbers = [str(task) for task in range(1, record.tasks[-1].task + 1)]
    rows = table("true task", *numbers)
    for number, row in zip(numbers, record.tasks[-1].confusion, strict=True):
        rows.add_row(number, *(f"{100 * count / max(sum(row), 1):.0f}" for count in row))
    return rows


def _print_metrics(screen: Console, folder: str, record: Record) -> None:
    screen.print(f"backward transfer {_backward_transfer(record):.2f}")
    try:
        evaluations = _evaluations(folder, record)
    except UserError as error:
        screen.print(f"no intervals, calibration, scores and classes: {error}", markup=False)
    else:
        screen.print(_hardest_classes(record, evaluations[-1]), _metrics_table(evaluations), sep="\n")


def _hardest_classes(record: Record, last: Evaluation) -> str:
    tested = [pair for pair in zip(last.class_top1, record.class_names, strict=False) if not isnan(pair[0])]
    return f"hardest classes: {', '.join(f'{plain(name)} {top1:.1f} %' for top1, name in sorted(tested)[:HARDEST])}"


def _metrics_table(evaluations: Sequence[Evaluation]) -> Table:
    rows = table("task", "top-1, 95 % interval", "calibration error", "new above old scores")
    for number, task in enumerate(evaluations, 1):
        low, high = task.interval
        gap = "-" if isnan(task.score_gap) else f"{task.score_gap:+.2f} deviations"
        rows.add_row(str(number), f"{low:.2f} to {high:.2f}", f"{task.calibration_error:.2f}", gap)
    return rows
