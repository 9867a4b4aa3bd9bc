"""`ssil report`: an HTML page of the results of runs."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from ssil.benchmark.record import verify_predictions
from ssil.benchmark.results import find_runs
from ssil.cli.terminal import printable, require_plotly
from ssil.core.errors import UserError
from ssil.core.files import refuse_special, replacing

if TYPE_CHECKING:
    from ssil.reporting.sections import Section

MARK = "Made by ssil "
"""A text that every page contains."""

app = App(
    name="report",
    help_epilogue="""Runs that differ in their seeds only share a line; each stream has a section.
The page, OUT/index.html, needs no network; headline.md, .tex, .csv are beside
it.

Examples:
  ssil report runs/* --out report
  ssil report runs/ssil runs/ft --out report""",
)


@app.default
def report(
    directory: Annotated[Path, Parameter(help="--out directories of runs, or folders that contain them")],
    /,
    *more: Path,
    out: Annotated[Path, Parameter(help="directory of the page and the tables")] = Path("report"),
) -> None:
    """Write a page with the results of runs: tables, curves, heat maps, bias, cost, protocols."""
    require_plotly("report")
    from ssil.reporting.report_page import page, tables
    from ssil.reporting.sections import sections

    given = find_runs([directory, *more])
    for path in (directory, *more):
        if not any(run.folder.is_relative_to(path) for run in given):
            print(f"{printable(path)} is left out: it has no record yet", file=sys.stderr)
    for run in given:
        verify_predictions(run.folder)
    found = [_with_published(section) for section in sections(given)]
    files = {"index.html": page(found), **tables(found)}
    _refuse_foreign_files([out / name for name in files])
    try:
        for name, text in files.items():
            with replacing(out / name) as file:
                file.write(text.encode())
    except OSError as error:
        raise UserError(f"out: {out} can't be written ({error.strerror}); give another directory") from None
    runs, size = sum(len(section.runs) for section in found), len(files["index.html"].encode()) / 1e6
    print(f"{runs} runs in {printable(out / 'index.html')} ({size:.1f} MB); tables: {', '.join(list(files)[1:])}")


def _with_published(section: "Section") -> "Section":
    """Return a section with the accuracies that others have published for runs that follow their protocol."""
    from ssil.reproduction.protocol_bands import published_band

    found = {variant.name: published_band(variant.records[0]) for variant in section.variants}
    return replace(section, published={name: band for name, band in found.items() if band})


def _refuse_foreign_files(paths: Sequence[Path]) -> None:
    """Raise UserError if a file would be replaced that is no report: the first path is that of the page."""
    refuse_special(paths, "out")
    page = paths[0]
    ours = page.exists() and MARK in page.read_text(encoding="utf-8", errors="replace")
    if foreign := [] if ours else [path for path in paths if path.exists()]:
        raise UserError(f"out: {foreign[0]} was not made by ssil report; give another directory")
