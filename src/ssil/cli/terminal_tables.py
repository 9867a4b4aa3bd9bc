"""Records as tables for the terminal."""

from collections.abc import Iterable, Mapping, Sequence
from math import isnan

from rich.table import Table

from ssil.benchmark.record import Record, Summary, TaskRecord, summarise
from ssil.benchmark.results import memory
from ssil.cli.terminal import table
from ssil.learning.metrics import Evaluation, newest_share


def title(record: Record) -> str:
    """A run in a line: method, data, stream, memory, seed."""
    config, sizes = record.config, record.task_sizes
    some = "" if sum(sizes) == len(record.class_order) else f" of {len(record.class_order)}"
    stream = f"{sum(sizes)}{some} classes in {len(sizes)} tasks, {memory(config['memory'])}"
    skipped = record.provenance.get("skipped_files", [])
    count = record.provenance.get("left_out", len(skipped))
    left_out = f" ({count:,} left out, see remarks.csv; {skipped[0]} the first)" if skipped else ""
    made = " (synthetic)" if record.provenance.get("synthetic_data") else ""
    held = config.get("validation")
    tested = f", tested on {100 * held:g} % of the training images" if held else ""
    return f"{record.label} on {config['dataset']}{made}: {stream}, seed {config['seed']}{tested}{left_out}"


def seconds(value: float) -> str:
    """A time as people say it.

    >>> seconds(8.24), seconds(125), seconds(7320)
    ('8.2 s', '2 min 05 s', '2 h 02 min')
    """
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def results(record: Record, last: int | None = None) -> Table:
    """After each task: accuracies over all classes seen, the predictions on the newest task, time and speed."""
    made = table("task", "classes", "top-1", "top-5", "on the newest", "time", "images/s")
    for task in record.tasks[-last:] if last else record.tasks:
        made.add_row(*_result(task, len(record.task_sizes)))
    return made


def _result(task: TaskRecord, tasks: int) -> Iterable[str]:
    share = f"{newest_share(task.confusion):.1f} %" if task.task > 1 else "-"
    accuracies = f"{task.top1:.2f}", f"{task.top5:.2f}"
    cost = seconds(task.seconds), f"{task.images_per_second:.0f}"
    return f"{task.task}/{tasks}", str(task.classes_seen), *accuracies, share, *cost


def line(record: Record) -> str:
    """The last task's results in a line."""
    task, classes, top1, top5, share, cost, speed = _result(record.tasks[-1], len(record.task_sizes))
    results = f"top-1 {top1}, top-5 {top5}, on the newest task {share}"
    return f"task {task}, {classes} classes: {results}, {cost}, {speed} images/s"


def headlines(records: Mapping[str, Record]) -> Table:
    """A row a run: average top-1 and top-5 over the tasks, last top-1, forgetting, the newest task's share."""
    columns = "tasks", "top-1", "top-5", "last", "forgets", "newest"
    made = table("run", "method", *columns, words=2)
    for name, record in records.items():
        made.add_row(name, record.label, *_headline(record))
    return made


def _headline(record: Record) -> Iterable[str]:
    progress = f"{len(record.tasks)}/{len(record.task_sizes)}"
    if not record.tasks:
        return progress, *["-"] * 5
    summary, share = summary_of(record), newest_share(record.tasks[-1].confusion)
    values = summary.average_top1, summary.average_top5, summary.last_top1, summary.forgetting
    return progress, *(f"{value:.2f}" for value in values), f"{share:.1f} %"


def sentence(record: Record) -> str:
    """The summary in a line."""
    summary = summary_of(record)
    accuracies = f"average top-1 {summary.average_top1:.2f}, top-5 {summary.average_top5:.2f}"
    ends = f"last top-1 {summary.last_top1:.2f}, forgetting {summary.forgetting:.2f}"
    return f"{accuracies}; {ends}; {seconds(summary.seconds)}"


def summary_of(record: Record) -> Summary:
    """The record's summary, or that of the tasks done so far."""
    return record.summary or summarise(record.tasks)


def confusion(record: Record) -> Table:
    """True task by predicted task after the last task done, each row in percent."""
    tasks = record.tasks[-1].task
    numbers = [str(task) for task in range(1, tasks + 1)]
    made = table("true task", *numbers)
    for number, row in zip(numbers, record.tasks[-1].confusion, strict=True):
        made.add_row(number, *(f"{100 * count / max(sum(row), 1):.0f}" for count in row))
    return made


def evaluations(found: Sequence[Evaluation]) -> Table:
    """After each task: what the predictions come to beside the results."""
    made = table("task", "top-1, 95 % interval", "calibration error", "new above old scores")
    for number, task in enumerate(found, 1):
        low, high = task.interval
        gap = "-" if isnan(task.score_gap) else f"{task.score_gap:+.2f} deviations"
        made.add_row(str(number), f"{low:.2f} to {high:.2f}", f"{task.calibration_error:.2f}", gap)
    return made


def hardest(record: Record, last: Evaluation, count: int = 5) -> str:
    """The classes with the lowest accuracies, in a line."""
    known = [pair for pair in zip(last.class_top1, record.class_names, strict=False) if not isnan(pair[0])]
    return f"hardest classes: {', '.join(f'{name} {accuracy:.1f} %' for accuracy, name in sorted(known)[:count])}"
