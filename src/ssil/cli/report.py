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
from ssil.core.errors import UserError, did_you_mean
from ssil.core.files import refuse_special, replacing

if TYPE_CHECKING:
    from ssil.reporting.sections import Section

MARK = "Made by ssil "
"""A text that every page contains."""

app = App(
    name="report",
    help_epilogue="""Runs that differ in their seeds only share a line; each stream has a section.
The page, OUT/index.html, needs no network; beside it are headline.md, .tex and
.csv, and methods.tex: a table for a paper, methods by streams.

Examples:
  ssil report runs/* --out report
  ssil report runs/ssil runs/ft --out report
  ssil report runs/* --out paper --columns average_top1,last_top1 --figures pdf
  ssil report runs/* --out paper --baseline ft""",
)


@app.default
def report(
    directory: Annotated[Path, Parameter(help="--out directories of runs, or folders that contain them")],
    /,
    *more: Path,
    out: Annotated[Path, Parameter(help="directory of the page and the tables")] = Path("report"),
    columns: Annotated[
        str, Parameter(help="of methods.tex, for each stream: names of headline.csv, such as average_top1,last_top1")
    ] = "average_top1",
    baseline: Annotated[
        str | None,
        Parameter(
            metavar="NAME",
            help="compare each variant with this one by runs of equal seed and class order; stars in methods.tex",
        ),
    ] = None,
    figures: Annotated[
        str | None, Parameter(metavar="FORMATS", help="also write figures for a paper: pdf, svg, png, or pdf,svg")
    ] = None,
) -> None:
    """Write a page with the results of runs: tables, curves, heat maps, bias, cost, protocols."""
    require_plotly("report")
    from ssil.reporting.figures.style import FORMATS, save
    from ssil.reporting.headline_table import COLUMNS
    from ssil.reporting.report_page import figures as paper_figures
    from ssil.reporting.report_page import page, tables
    from ssil.reporting.sections import sections
    from ssil.reporting.significance import check_baseline

    shown = _chosen("columns", columns, list(COLUMNS))
    formats = _chosen("figures", figures, FORMATS) if figures else []
    given = find_runs([directory, *more])
    for path in (directory, *more):
        if not any(run.folder.is_relative_to(path) for run in given):
            print(f"{printable(path)} is left out: it has no record yet", file=sys.stderr)
    for run in given:
        verify_predictions(run.folder)
    found = [_with_published(section) for section in sections(given)]
    if baseline:
        check_baseline(found, baseline)
    files = {"index.html": page(found, shown, baseline), **tables(found, shown, baseline)}
    drawn = {f"{name}.{end}": figure for name, figure in paper_figures(found).items() for end in formats}
    _refuse_foreign_files([out / name for name in (*files, *drawn)])
    try:
        for name, text in files.items():
            with replacing(out / name) as file:
                file.write(text.encode())
        for name, figure in drawn.items():
            save(figure, out / name)
    except OSError as error:
        raise UserError(f"out: {out} can't be written ({error.strerror}); give another directory") from None
    runs, size = sum(len(section.runs) for section in found), len(files["index.html"].encode()) / 1e6
    print(
        f"{runs} runs in {printable(out / 'index.html')} ({size:.1f} MB); beside it: {', '.join([*files, *drawn][1:])}"
    )


def _chosen(field: str, text: str, known: Sequence[str]) -> list[str]:
    """Return the names between commas; raise UserError if one of them is not known."""
    names = [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in known]:
        hint = did_you_mean(unknown[0], known, f"there are: {', '.join(known)}")
        raise UserError(f"{field}: {unknown[0][:100]!r} is not known; {hint}")
    return list(dict.fromkeys(names))


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
