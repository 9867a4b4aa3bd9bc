"""`ssil show`: what runs have left."""

from contextlib import suppress
from dataclasses import asdict
from json import dumps, loads
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console

from ssil.benchmark.record import Record, read_predictions, read_record
from ssil.cli.terminal import Json, console, json_line
from ssil.cli.terminal_tables import confusion, evaluations, hardest, headlines, results, summary_of, title
from ssil.core.errors import UserError
from ssil.learning.metrics import Evaluation, backward_transfer, evaluate_run, newest_share

app = App(
    name="show",
    help_epilogue="""Examples:
  ssil show runs/first
  ssil show runs/first --metrics
  ssil show runs/* --json""",
)


@app.default
def show(
    directory: Annotated[Path, Parameter(help="the --out directory of a run, and of more runs")],
    /,
    *more: Path,
    metrics: Annotated[
        bool, Parameter(negative="", show_default=False, help="also what the predictions in arrays/ come to")
    ] = False,
    json: Json = False,
) -> None:
    """Show the results of runs; of one that was scored in several ways, all of them."""
    records = {str(folder): read_record(folder) for path in (directory, *more) for folder in (path, *_scorers(path))}
    if json:
        for name, record in records.items():
            json_line(run=name, **_numbers(record), **({"metrics": _metrics(name, record)} if metrics else {}))
    else:
        _tables(records, metrics)


def _scorers(directory: Path) -> list[Path]:
    """The folders of a run's further scorers."""
    return sorted(file.parent for file in directory.glob("*/record.json"))


def _numbers(record: Record) -> dict[str, object]:
    done = record.tasks
    headline = {**summary_of(record).model_dump(), "newest_share": newest_share(done[-1].confusion)} if done else {}
    return {"finished": record.summary is not None, **headline, "record": record.model_dump(mode="json")}


def _metrics(folder: str, record: Record) -> dict[str, object] | None:
    """What the predictions come to, null where there are none; what is no number is null."""
    with suppress(UserError):
        tasks = [asdict(evaluation) for evaluation in _evaluated(folder, record)]
        transfer = {"backward_transfer": _transfer(record)} if tasks else {}
        return {**transfer, "tasks": loads(dumps(tasks), parse_constant=lambda _: None)}
    return None


def _evaluated(folder: str, record: Record) -> list[Evaluation]:
    return evaluate_run([read_predictions(folder, task.task) for task in record.tasks], record.task_sizes)


def _transfer(record: Record) -> float:
    return backward_transfer([task.task_top1 for task in record.tasks])


def _tables(records: dict[str, Record], metrics: bool) -> None:
    screen = console()
    screen.print(headlines(records))
    for name, record in records.items():
        screen.print(f"[bold]{name}[/]: {title(record)}")
        if record.tasks:
            screen.print(results(record))
            screen.print(
                f"predicted task after task {len(record.tasks)}, % of the true task", confusion(record), sep="\n"
            )
        if record.tasks and metrics:
            _more(screen, name, record)


def _more(screen: Console, folder: str, record: Record) -> None:
    screen.print(f"backward transfer {_transfer(record):.2f}")
    try:
        found = _evaluated(folder, record)
    except UserError as error:
        screen.print(f"no intervals, calibration, scores and classes: {error}")
    else:
        screen.print(hardest(record, found[-1]), evaluations(found), sep="\n")
