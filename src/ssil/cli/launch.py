"""Carry a run out and show it."""

import os
import sys
from pathlib import Path

from ssil.cli.bars import Bars
from ssil.cli.interrupts import saying_how_to_go_on
from ssil.cli.output import console, json_line
from ssil.cli.tables import results, sentence, title
from ssil.cli.watch import JsonLines, Lines, Reporter
from ssil.config import RunConfig
from ssil.record import Record
from ssil.runs import run


def launch(config: RunConfig, json: bool) -> None:
    """Run, or go on, with the reporter that fits; at the end the results."""
    reporter = _reporter(json)
    with saying_how_to_go_on(config.out), reporter:
        record = run(config, reporter)
    if isinstance(reporter, JsonLines):
        json_line(event="summary", out=config.out, **record.summary.model_dump() if record.summary else {})
    elif isinstance(reporter, Bars | Lines):
        _tell(record, config.out, "already finished" if reporter.was_finished else "finished")


def _reporter(json: bool) -> Reporter:
    """Of several processes only the first speaks."""
    if os.environ.get("LOCAL_RANK", "0") != "0":
        return Reporter()
    if json:
        return JsonLines()
    return Bars() if sys.stdout.isatty() else Lines()


def _tell(record: Record, out: Path | None, how: str) -> None:
    screen = console()
    screen.print(f"[bold]{title(record)}", results(record), sentence(record), sep="\n")
    if out:
        screen.print(f"{how}; kept in {out} (see: ssil show {out})")
