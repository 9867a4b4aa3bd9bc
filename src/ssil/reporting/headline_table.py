"""The headline table: one row per variant, the best number of each column in bold."""

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from math import isnan, nan
from statistics import fmean
from typing import Final, Literal, NamedTuple

from ssil.benchmark.record import Record, TaskRecord, summarise
from ssil.learning.memory import MEGABYTE
from ssil.learning.metrics import newest_share
from ssil.reporting.sections import Section, Variant
from ssil.reporting.text_tables import Table


class Column(NamedTuple):
    """A number of a run, and how the best one is chosen.

    `best` is "fair" where the best number is the nearest to the newest task's share of the test images, and None where
    no number is better than another. A number that a record does not have is nan.
    """

    title: str
    value: Callable[[Record], float]
    best: Literal["highest", "lowest", "fair"] | None
    digits: int = 1


COLUMNS: Final = {
    "average_top1": Column("average top-1", lambda run: summarise(run.tasks).average_top1, "highest"),
    "average_top5": Column("average top-5", lambda run: summarise(run.tasks).average_top5, "highest"),
    "last_top1": Column("last top-1", lambda run: run.tasks[-1].top1, "highest"),
    "task_aware_top1": Column("task known", lambda run: task_aware(run), "highest"),
    "forgetting": Column("forgetting", lambda run: summarise(run.tasks).forgetting, "lowest"),
    "newest_share": Column("on the newest task", lambda run: newest_share(run.tasks[-1].confusion), "fair"),
    "mb_kept": Column("MB kept", lambda run: kept_megabytes(run.tasks[-1]), None, 2),
    "images_seen": Column("images seen", lambda run: summarise(run.tasks).images_seen, None, 0),
    "gradient_steps": Column("gradient steps", lambda run: _steps(run), None, 0),
    "seconds": Column("seconds", lambda run: summarise(run.tasks).seconds, "lowest", 0),
    "peak_memory_mb": Column("peak MB", lambda run: max(task.peak_memory_mb for task in run.tasks), "lowest", 0),
}
"""Columns by their names in headline.csv and in `ssil diff --json`; accuracies and shares are in percent."""

LEADING: Final = ("variant", "seeds", "tasks")


def _steps(run: Record) -> float:
    """Return the gradient steps; nan if they were not counted."""
    steps = summarise(run.tasks).gradient_steps
    return nan if steps is None else steps


def task_aware(run: Record) -> float:
    """Return top-1 where the task is known, averaged over the tasks; nan if an older record does not have it."""
    return fmean(nan if task.task_aware_top1 is None else task.task_aware_top1 for task in run.tasks)


def kept_megabytes(task: TaskRecord) -> float:
    """Return the megabytes of model, exemplars and what is stored with them after a task; nan if they are not known."""
    return nan if task.kept_bytes is None else task.kept_bytes / MEGABYTE


def fair_share(confusion: Sequence[Sequence[int]]) -> float:
    """Return the percentage of the test images that belong to the newest task.

    >>> fair_share([[3, 3], [1, 1]])
    25.0
    """
    return 100 * sum(confusion[-1]) / sum(map(sum, confusion))


def headline(section: Section) -> Table:
    """Return the headline table of one section."""
    return _headline(section, _known_columns([section]))


def _known_columns(sections: Sequence[Section]) -> list[Column]:
    """Return the columns; without task-aware accuracy where no variant has it of all its runs.

    Records of versions before 0.3 do not have it.
    """
    variants = (variant for part in sections for variant in part.variants)
    known = any(all(task.task_aware_top1 is not None for task in variant.last) for variant in variants)
    return [column for key, column in COLUMNS.items() if known or key != "task_aware_top1"]


def _headline(section: Section, columns: Sequence[Column]) -> Table:
    rows = [[*_leading(one), *(_text(one, column) for column in columns)] for one in section.variants]
    best = {
        (row, len(LEADING) + place) for place, column in enumerate(columns) for row in _best(section.variants, column)
    }
    return Table([*LEADING, *(column.title for column in columns)], rows, frozenset(best))


def _text(variant: Variant, column: Column) -> str:
    found = variant.over(column.value)
    return "-" if isnan(found.mean) else found.text(column.digits)


def headlines(sections: Sequence[Section]) -> Table:
    """Return the rows of all sections in one table, with a column for the stream if there are several."""
    parts = [_headline(section, _known_columns(sections)) for section in sections]
    if len(parts) == 1:
        return parts[0]
    rows = [[one.shown, *row] for one, part in zip(sections, parts, strict=True) for row in part.rows]
    starts = [sum(len(part.rows) for part in parts[:place]) for place in range(len(parts))]
    best = {(start + row, 1 + column) for start, part in zip(starts, parts, strict=True) for row, column in part.best}
    return Table(["stream", *parts[0].header], rows, frozenset(best), words=2)


def by_stream(
    sections: Sequence[Section], keys: Sequence[str], marks: Mapping[tuple[str, str, str], str] | None = None
) -> Table:
    """Return a table with a row per variant, and for each stream the columns that `keys` name; the best are bold.

    `marks` are put behind numbers: by the title of the stream, the column's key and the variant.
    """
    names = list(dict.fromkeys(one.name for section in sections for one in section.variants))
    columns = [(section, key) for section in sections for key in keys]
    titles = _short_titles(sections) if len(sections) > 1 else []
    header = titles if titles and len(keys) == 1 else [COLUMNS[key].title for _, key in columns]
    groups = [(title, len(keys)) for title in titles if len(keys) > 1]
    behind = marks or {}
    rows, best = [[name, *(_cell(section, name, key, behind) for section, key in columns)] for name in names], set()
    for place, (section, key) in enumerate(columns, 1):
        best |= {(names.index(section.variants[row].name), place) for row in _best(section.variants, COLUMNS[key])}
    return Table(["variant", *header], rows, frozenset(best), groups=groups)


def _short_titles(sections: Sequence[Section]) -> list[str]:
    """Return the sections' names, or else their titles without the words at the start, up to a comma, that all have."""
    if all(section.name for section in sections) and len({section.name for section in sections}) == len(sections):
        return [section.name for section in sections]
    parts = [section.title.split(", ") for section in sections]
    shared = len([*takewhile(lambda same: len(set(same)) == 1, zip(*parts, strict=False))])
    return [", ".join(one[shared:] or one[-1:]) for one in parts]


def _cell(section: Section, name: str, key: str, marks: Mapping[tuple[str, str, str], str]) -> str:
    text = next((_text(one, COLUMNS[key]) for one in section.variants if one.name == name), "-")
    return text + marks.get((section.title, key, name), "")


def numbers(sections: Sequence[Section]) -> Table:
    """Return the headline table for programs: all digits, and a column per deviation (empty for one seed)."""
    names = [name for key in COLUMNS for name in (key, f"{key}_deviation")]
    rows = [[section.shown, *_leading(one), *_digits(one)] for section in sections for one in section.variants]
    return Table(["stream", *LEADING, *names], rows, words=2)


def _leading(variant: Variant) -> list[str]:
    first = variant.records[0]
    return [variant.name, str(len(variant.records)), f"{len(first.tasks)}/{len(first.task_sizes)}"]


def _digits(variant: Variant) -> list[str]:
    estimates = [variant.over(column.value) for column in COLUMNS.values()]
    pairs = [(one.mean, one.deviation if one.count > 1 else nan) for one in estimates]
    return ["" if isnan(number) else str(number) for pair in pairs for number in pair]


def _best(variants: Sequence[Variant], column: Column) -> list[int]:
    """Return the rows with the best number, rounded as shown; none if there is no best, or no two variants compete."""
    if column.best is None:
        return []
    found = {row: one.over(column.value).mean for row, one in enumerate(variants) if one.ranked}
    means = {row: round(mean, column.digits) for row, mean in found.items() if not isnan(mean)}
    if len(means) < 2:
        return []
    fair = fair_share(next(one for one in variants if one.ranked).confusion)
    costs = {
        row: {"highest": -mean, "lowest": mean, "fair": abs(mean - fair)}[column.best] for row, mean in means.items()
    }
    return [row for row, cost in costs.items() if cost == min(costs.values())]
