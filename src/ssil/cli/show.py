"""`ssil show`: what runs have left."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from ssil.cli.output import Json, console, json_line
from ssil.cli.tables import confusion, headlines, results, summary_of, title
from ssil.metrics import newest_share
from ssil.record import Record, read_record

app = App(
    name="show",
    help_epilogue="""Examples:
  ssil show runs/first
  ssil show runs/*
  ssil show runs/* --json""",
)


@app.default
def show(
    directory: Annotated[Path, Parameter(help="the --out directory of a run, and of more runs")],
    /,
    *more: Path,
    json: Json = False,
) -> None:
    """Show the results of runs; of one that was scored in several ways, all of them."""
    records = {str(folder): read_record(folder) for path in (directory, *more) for folder in (path, *_scorers(path))}
    if json:
        for name, record in records.items():
            json_line(run=name, **_numbers(record))
    else:
        _tables(records)


def _scorers(directory: Path) -> list[Path]:
    """The folders of a run's further scorers."""
    return sorted(file.parent for file in directory.glob("*/record.json"))


def _numbers(record: Record) -> dict[str, object]:
    done = record.tasks
    headline = {**summary_of(record).model_dump(), "newest_share": newest_share(done[-1].confusion)} if done else {}
    return {"finished": record.summary is not None, **headline, "record": record.model_dump(mode="json")}


def _tables(records: dict[str, Record]) -> None:
    screen = console()
    screen.print(headlines(records))
    for name, record in records.items():
        screen.print(f"[bold]{name}[/]: {title(record)}")
        if record.tasks:
            screen.print(results(record))
            screen.print(
                f"predicted task after task {len(record.tasks)}, % of the true task", confusion(record), sep="\n"
            )
