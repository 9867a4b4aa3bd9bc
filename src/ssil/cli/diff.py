"""`ssil diff`: compare two runs."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter
from rich.table import Table

from ssil.benchmark.record import read_record
from ssil.benchmark.results import Run
from ssil.cli.terminal import Json, console, json_line, plain, table
from ssil.reporting.difference import Difference, difference
from ssil.reporting.headline_table import COLUMNS

app = App(
    name="diff",
    help_epilogue="""Settings, then results after the last task that both runs have finished.

Examples:
  ssil diff runs/ft runs/ssil
  ssil diff runs/ft runs/ssil --json""",
)

SHOWN = 60
"""Largest number of characters of a setting's value."""


@app.default
def diff(
    first: Annotated[Path, Parameter(help="the --out directory of a run")],
    second: Annotated[Path, Parameter(help="the --out directory of another run")],
    /,
    *,
    json: Json = False,
) -> None:
    """Show what differs between two runs, in settings and results."""
    found = difference(Run(first, read_record(first)), Run(second, read_record(second)))
    if json:
        json_line(first=first, second=second, same=found.none, **asdict(found))
    elif found.none:
        console().print("no difference")
    else:
        screen = console()
        screen.print(f"A: {plain(first)}\nB: {plain(second)}")
        screen.print("", *(line for part in _tables(found) for line in (part, "")), *_sentences(found), sep="\n")


def _tables(found: Difference) -> Iterator[Table]:
    if found.settings:
        yield _settings(found.settings)
    if found.tasks:
        yield _results(found.results, found.tasks)


def _settings(settings: dict[str, tuple[Any, Any]]) -> Table:
    shown = table("setting", "A", "B", words=3)
    for name, values in settings.items():
        shown.add_row(plain(name), *(plain(_short(value)) for value in values))
    return shown


def _short(value: Any) -> str:
    """Return a value as text of at most `SHOWN` characters.

    >>> _short(None), _short([1, 2]), len(_short(list(range(100)))) == SHOWN
    ('-', '1, 2', True)
    """
    text = "-" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def _results(results: dict[str, tuple[float, float]], tasks: int) -> Table:
    shown = table(f"after task {tasks}", "A", "B", "B - A")
    for key, (ours, theirs) in results.items():
        shown.add_row(COLUMNS[key].title, f"{ours:.2f}", f"{theirs:.2f}", f"{theirs - ours:+.2f}")
    return shown


def _sentences(found: Difference) -> Iterator[str]:
    if not found.settings:
        yield "no setting differs"
    if not found.same_data:
        yield "the data differ: A and B had other images or labels, so their results are of two problems"
    if found.done[0] != found.done[1]:
        yield "A has done {} tasks, B {}".format(*found.done)
    if found.tasks:
        yield f"results differ from task {found.since} on" if found.since else "results differ in the cost alone"
    if images := found.images:
        yield f"the two disagree on {images.disagree:,} of {images.count:,} test images after task {found.tasks}"
        gap = f"{images.difference:+.2f} points of top-1, 95 % interval {images.low:+.2f} to {images.high:+.2f}"
        yield f"B - A: {gap} (paired bootstrap over these images)"
