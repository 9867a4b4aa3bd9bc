"""Records of runs as text for the terminal: titles, lines and tables."""

from collections.abc import Iterable, Mapping

from rich.table import Table

from ssil.benchmark.record import Record, Summary, TaskRecord, summarise
from ssil.benchmark.results import describe_budget
from ssil.cli.terminal import duration, plain, table
from ssil.learning.memory import MEGABYTE
from ssil.learning.metrics import newest_share


def run_title(record: Record) -> str:
    """Return a run in one line: method, data set, stream, memory, seed."""
    config, sizes = record.config, record.task_sizes
    some = "" if sum(sizes) == len(record.class_order) else f" of {len(record.class_order)}"
    own = f" ({config['stream']})" if "stream" in config else ""
    stream = f"{sum(sizes)}{some} classes in {len(sizes)} tasks{own}, {describe_budget(record.memory)}"
    skipped = record.provenance.get("skipped_files", [])
    count = record.provenance.get("left_out", len(skipped))
    left_out = f" ({count:,} images left out, the first is {skipped[0]}; see remarks.csv)" if skipped else ""
    synthetic = " (synthetic)" if record.provenance.get("synthetic_data") else ""
    held_out = config.get("validation")
    tested = f", tested on {100 * held_out:g} % of the training images" if held_out else ""
    return f"{record.label} on {config['dataset']}{synthetic}: {stream}, seed {config['seed']}{tested}{left_out}"


def summary_of(record: Record) -> Summary:
    """Return the record's summary, or that of the tasks finished so far."""
    return record.summary or summarise(record.tasks)


def summary_line(record: Record) -> str:
    """Return the summary of a run in one line."""
    summary = summary_of(record)
    accuracies = f"average top-1 {summary.average_top1:.2f}, top-5 {summary.average_top5:.2f}"
    ends = f"last top-1 {summary.last_top1:.2f}, forgetting {summary.forgetting:.2f}"
    return f"{accuracies}; {ends}; {duration(summary.seconds)}"


def task_line(record: Record) -> str:
    """Return the results after the last finished task in one line."""
    task, classes, top1, top5, _, share, time, speed = _task_cells(record.tasks[-1], len(record.task_sizes))
    accuracies = f"top-1 {top1}, top-5 {top5}, on the newest task {share}"
    return f"task {task}, {classes} classes: {accuracies}, {time}, {speed} images/s"


def task_table(record: Record, last: int | None = None) -> Table:
    """Return a table with one row per task, or only for the `last` ones.

    Columns: accuracies over all classes seen, top-1 where an image's task is known, share of the predictions that name
    the newest task, time, speed.
    """
    rows = table("task", "classes", "top-1", "top-5", "task known", "on newest task", "time", "images/s")
    for task in record.tasks[-last:] if last else record.tasks:
        rows.add_row(*_task_cells(task, len(record.task_sizes)))
    return rows


def _task_cells(task: TaskRecord, tasks: int) -> Iterable[str]:
    newest = task.task > 1 and task.task_top1[-1] is not None  # else the first task, or one without new classes
    share = f"{newest_share(task.confusion):.1f} %" if newest else "-"
    accuracies = f"{task.top1:.2f}", f"{task.top5:.2f}"
    cost = duration(task.seconds), f"{task.images_per_second:.0f}"
    known = "-" if task.task_aware_top1 is None else f"{task.task_aware_top1:.2f}"
    return f"{task.task}/{tasks}", str(task.classes_seen), *accuracies, known, share, *cost


def run_table(records: Mapping[str, Record]) -> Table:
    """Return a table with one row per run.

    Columns: average top-1 and top-5 over the tasks, last top-1, forgetting, share of the predictions that name the
    newest task; megabytes of model and exemplars; images seen, gradient steps and seconds of training.
    """
    headings = ("top-1", "top-5", "last", "forgets", "newest", "MB", "images", "steps", "seconds")
    rows = table("run", "method", "tasks", *headings, words=2)
    for name, record in records.items():
        rows.add_row(plain(name), plain(record.label), *_run_cells(record))
    return rows


def _run_cells(record: Record) -> Iterable[str]:
    finished = f"{len(record.tasks)}/{len(record.task_sizes)}"
    if not record.tasks:
        return finished, *["-"] * 9
    summary, share = summary_of(record), newest_share(record.tasks[-1].confusion)
    values = summary.average_top1, summary.average_top5, summary.last_top1, summary.forgetting
    costs = summary.images_seen, summary.gradient_steps, summary.training_seconds
    return finished, *(f"{value:.2f}" for value in values), f"{share:.1f} %", kept_text(record), *map(_short, costs)


def kept_text(record: Record) -> str:
    """Return the megabytes that are kept after the last finished task; "-" if they are not known."""
    kept = record.tasks[-1].kept_bytes
    return "-" if kept is None else f"{kept / MEGABYTE:.2f}"


def _short(number: float | None) -> str:
    """Return a number in few characters.

    >>> _short(733_824), _short(12_200_000), _short(9_812), _short(7.3), _short(None)
    ('734k', '12.2M', '9812', '7', '-')
    """
    if number is None:
        return "-"
    if number >= 1e7:
        return f"{number / 1e6:.1f}M"
    return f"{number / 1e3:.0f}k" if number >= 1e4 else f"{number:.0f}"
