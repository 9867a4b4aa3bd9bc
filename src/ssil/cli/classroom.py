"""An update on a terminal: progress while it is learnt, then what it has changed."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ssil.classifier.learn_command import Limits, Published, drops, learn
from ssil.cli.interrupts import Interrupts
from ssil.cli.model_page import needs_plotly, write_page
from ssil.cli.terminal import console, duration, json_line, table
from ssil.learning.execution import keep_freed_memory
from ssil.learning.task import Pace
from ssil.learning.task import Progress as Course

WORST = 10
"""How many of the classes that got worse are named."""


def teach(
    model: Path,
    images: str,
    given: Mapping[str, Any],
    limits: Limits,
    init: str | None,
    minutes: float | None,
    json: bool,
    html: Path | None = None,
    trusted: Sequence[str] = (),
) -> None:
    """Learn, and tell what it has led to."""
    if html:
        needs_plotly()
    keep_freed_memory()
    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeRemainingColumn(),
        console=console(),
        transient=True,
        disable=json or not sys.stdout.isatty(),
    )
    row = bars.add_task("looking at the pictures", total=None)

    def on_progress(done: int, files: int) -> None:
        bars.update(row, completed=done, total=files)
        stop()

    def watch(_: Course, pace: Pace) -> None:
        bars.update(row, completed=pace.done, total=1.0, description="learning")
        stop()

    def stop() -> None:
        if interrupts.requested:
            raise KeyboardInterrupt("the model is as it was")

    with Interrupts() as interrupts, bars:
        interrupts.training = True
        made = learn(model, images, given, limits, on_progress, watch, init, minutes, trusted)
    if json:
        _remark(made, sys.stderr)
        json_line(version=made.version.number, **made.version.history[-1])
    else:
        _tell(model, made)
    if html:
        write_page(html, model.resolve().name, made.version, made.update.after, made.update.before)


def _remark(made: Published, file: TextIO) -> None:
    for remark in made.remarks[:WORST]:
        print(f"{remark.path}: {remark.reason}", file=file)
    if len(made.remarks) > WORST:
        print(f"... and {len(made.remarks) - WORST} more such remarks", file=file)


def _tell(model: Path, made: Published) -> None:
    screen, entry, update = console(), made.version.history[-1], made.update
    _remark(made, sys.stdout)
    news = f"{len(entry['new'])} new class(es)" + (f", more of {len(entry['more'])}" if entry["more"] else "")
    screen.print(f"version {made.version.number}: {news}, {entry['pictures']} pictures, {duration(entry['seconds'])}")
    shown = table("quiz", "before", "after")
    shown.add_row("old classes", _percent(entry["old_before"]), _percent(entry["old_after"]))
    shown.add_row("new classes", "", _percent(entry["new_after"]))
    screen.print(shown)
    worse = drops(update.before, update.after, update.known) if update.before and update.after else {}
    if worse:
        named = ", ".join(f"{name} (-{drop:.0f})" for name, drop in list(worse.items())[:WORST])
        screen.print(f"got worse: {named}", markup=False)
    if entry["score_gap"] is not None:
        lean = "new" if entry["score_gap"] > 0 else "old"
        screen.print(f"scores lean to the {lean} classes by {abs(entry['score_gap']):.2f} deviations;", end=" ")
    if entry["calibration_error"] is not None:
        plain = f" ({entry['calibration_error_plain']:.0f} before it was adjusted)" if entry["temperature"] != 1 else ""
        screen.print(f"confidence is off by {entry['calibration_error']:.0f} points on average{plain}")
    screen.print(f"kept in {model} (see: ssil inspect {model}; ssil predict {model} PICTURE)")


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} %"
