"""Carry a run out and show it."""

import os
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

from ssil.benchmark.config import RunConfig
from ssil.benchmark.record import Record
from ssil.benchmark.runner import run
from ssil.benchmark.tracking.tracker import RunObservers, Tracker, tracker
from ssil.cli.bars import Bars
from ssil.cli.heap import keep_freed_memory
from ssil.cli.interrupts import saying_how_to_go_on
from ssil.cli.terminal import console, json_line
from ssil.cli.terminal_tables import headlines, results, sentence, title
from ssil.cli.watch import JsonLines, Lines, Reporter
from ssil.learning.snapshot import MAIN


def launch(config: RunConfig, json: bool) -> None:
    """Run, or go on, with the reporter that fits; at the end the results."""
    keep_freed_memory()
    reporter, tracked = _reporter(json), _tracker(config, json)
    with saying_how_to_go_on(config.out), reporter, tracked or nullcontext():
        run(config, RunObservers(reporter, tracked) if tracked else reporter)
    if isinstance(reporter, JsonLines):
        for name, record in reversed([*reporter.records.items()]):
            _summarise(name, record, config.out)
    elif isinstance(reporter, Bars | Lines):
        _tell(reporter.records, config.out, "already finished" if reporter.was_finished else "finished")


def _first() -> bool:
    """Of several processes, on all nodes, only the first speaks."""
    places = ("RANK", "SLURM_PROCID", "NODE_RANK", "LOCAL_RANK")
    return all(os.environ.get(place, "0") == "0" for place in places)


def _tracker(config: RunConfig, json: bool) -> Tracker | None:
    found = tracker(config, lambda line: print(line, file=sys.stderr)) if _first() else None
    if found and not json:
        console().print(f"tracked by {config.track} (see: {found.store.look})")
    return found


def _reporter(json: bool) -> Reporter:
    if not _first():
        return Reporter()
    if json:
        return JsonLines()
    return Bars() if sys.stdout.isatty() else Lines()


def _summarise(scorer: str, record: Record, out: Path | None) -> None:
    """The summary as a JSON line; `scorer` only where it is not the method's own."""
    of = {} if scorer == MAIN else {"scorer": scorer}
    json_line(event="summary", out=_folder(scorer, out), **of, **record.summary.model_dump() if record.summary else {})


def _folder(scorer: str, out: Path | None) -> Path | None:
    return out if out is None or scorer == MAIN else out / scorer


def _tell(records: Mapping[str, Record], out: Path | None, how: str) -> None:
    screen, main = console(), records[MAIN]
    screen.print(f"[bold]{title(main)}", results(main), sentence(main), sep="\n")
    if len(records) > 1:
        names = {str(_folder(name, out) or name): record for name, record in records.items()}
        screen.print("", "one training, scored in several ways:", headlines(names), sep="\n")
    if out:
        screen.print(f"{how}; kept in {out} (see: ssil show {out})")
