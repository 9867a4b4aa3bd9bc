"""The budget table: what the training of each row costs under each condition, before anything is run."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ssil.core.classes import ClassTable
from ssil.learning.method import Method, Phase
from ssil.reporting.text_tables import Table
from ssil.reproduction.paper_scenarios import Condition
from ssil.reproduction.presets import Preset
from ssil.reproduction.rows import LINES

HEADER = ("column", "method", "epochs", "images", "steps", "about", "of SS-IL's images", "in Table S1")
NO_ROW = frozenset({"joint"})
"""Rows without settings in the supplement."""
NAMES = {line.row: name for name, line in reversed(LINES.items()) if not line.method}
"""The printed name of each row; other methods of the same run cost nothing more."""


def budget_table(preset: Preset, runs: Iterable[tuple[Condition, str]], seconds_per_pass: float | None) -> Table:
    """Return images, gradient steps and a forecast of the seconds of each run, by column and row.

    The last two columns compare a row's images with SS-IL's: under this preset, and under the methods' own schedules.

    Args:
        preset: The data and the settings.
        runs: Conditions and rows, such as `Need.run`.
        seconds_per_pass: What a forward pass of an image takes; None if it is not known.
    """
    rows = [_row(preset, condition, row, seconds_per_pass) for condition, row in runs]
    return Table(HEADER, rows, words=2)


def _row(preset: Preset, condition: Condition, row: str, unit: float | None) -> list[str]:
    budget = preset.budget(condition, row)
    about = "-" if unit is None else f"{budget.passes * unit:,.0f} s"
    shares = share(preset, condition, row), paper_share(preset, condition, row)
    return [
        preset.column(condition),
        NAMES[row],
        _epochs(preset, condition, row),
        f"{budget.images:,}",
        f"{budget.steps:,}",
        about,
        *("-" if one is None else f"{one:.2f}" for one in shares),
    ]


def share(preset: Preset, condition: Condition, row: str) -> float:
    """Return a row's images as a multiple of SS-IL's."""
    return preset.budget(condition, row).images / preset.budget(condition, "ssil").images


def paper_share(preset: Preset, condition: Condition, row: str) -> float | None:
    """Return the same under the methods' own schedules (Table S1); None if the supplement has none.

    Batches stay as the preset has them: with Table S1's, incomplete ones, which are left out, would be a large part of
    a small task.
    """
    if row in NO_ROW:
        return None
    rows = {name: _batch(settings) for name, settings in preset.rows.items()}
    images = preset.images_by_class[0]
    own = replace(preset, settings=_batch(preset.settings), rows=rows, images=images, equal_images=False)
    return share(own, condition, row)


def _batch(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name == "batch"}


def _epochs(preset: Preset, condition: Condition, row: str) -> str:
    """Return the epochs of the phases of a later task, after those of a first task if they differ."""
    method = preset.cell(condition, row, 0).described()[0].method
    first, later = ([str(phase.schedule.epochs) for phase in _phases(method, task)] for task in (1, 2))
    return ("" if first == later[:1] else f"{first[0]}, then ") + " + ".join(later)


def _phases(method: Method, task: int) -> list[Phase]:
    bounds = range(0, 2 * task + 1, 2)
    return [part for part in method.plan(ClassTable(("?",) * 2 * task, tuple(bounds))) if isinstance(part, Phase)]
