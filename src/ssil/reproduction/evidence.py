"""Records of the paper's runs, found by condition, line and seed."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ssil.benchmark.grid.cells import Cell, finished_record
from ssil.benchmark.record import Record, read_record
from ssil.benchmark.results import Run
from ssil.core.errors import UserError
from ssil.reproduction.paper_scenarios import MAIN, MIDDLE, Condition
from ssil.reproduction.presets import Preset
from ssil.reproduction.rows import LINES


class MissingError(Exception):
    """A run that is needed does not exist or is not finished."""


@dataclass(frozen=True)
class Need:
    """A line under a condition, needed for a table, a figure or a claim."""

    condition: Condition
    line: str

    @property
    def run(self) -> tuple[Condition, str]:
        """Condition and row of the run with this line; joint training keeps all images: one run serves all budgets."""
        row = LINES[self.line].row
        return self.condition._replace(level=MIDDLE, growing=False) if row == "joint" else self.condition, row


def needs(lines: Iterable[str], *conditions: Condition) -> tuple[Need, ...]:
    """Return each line under each condition (default: `MAIN`)."""
    return tuple(Need(condition, line) for condition in conditions or (MAIN,) for line in lines)


@dataclass(frozen=True)
class Evidence:
    """The finished runs of a preset under the directory `root` that have the preset's settings."""

    root: Path
    preset: Preset
    seeds: tuple[int, ...]

    def __hash__(self) -> int:
        return hash((self.root, self.preset.name, self.seeds))

    def runs(self, condition: Condition, line: str) -> list[Run]:
        """Return one run per seed; raise MissingError if one of them is missing."""
        return [self._run(condition, line, seed) for seed in self.seeds]

    def records(self, condition: Condition, line: str) -> list[Record]:
        """Return one record per seed; raise MissingError if one of them is missing."""
        return [run.record for run in self.runs(condition, line)]

    def values(self, measure: Callable[[Record], float], line: str, condition: Condition = MAIN) -> tuple[float, ...]:
        """Return a measure of a line, one value per seed; raise MissingError if a run is missing."""
        return tuple(measure(record) for record in self.records(condition, line))

    def has(self, condition: Condition, line: str) -> bool:
        """Return whether there is a run for every seed."""
        try:
            self.runs(condition, line)
        except MissingError:
            return False
        return True

    def has_any(self, condition: Condition, lines: Iterable[str]) -> bool:
        """Return whether there are runs of one of the lines, not counting joint training, which all budgets share."""
        return any(self.has(condition, line) for line in lines if LINES[line].row != "joint")

    @cache  # noqa: B019  # an Evidence lives as long as one command
    def _run(self, condition: Condition, line: str, seed: int) -> Run:
        cell = self.preset.cell(*Need(condition, line).run, seed)
        folder = self.root / cell.folder / LINES[line].method
        try:
            record = read_record(folder) if finished_record(cell, self.root) else None
        except UserError as error:
            raise MissingError(cell.folder) from error
        if not record or not record.summary:
            raise MissingError(cell.folder)
        return Run(folder, record)


def cells(preset: Preset, needed: Iterable[Need], seeds: Sequence[int]) -> list[Cell]:
    """Return the needed runs, each once, ordered by seed."""
    if not seeds:
        raise UserError("seeds: there must be at least 1")
    wanted = dict.fromkeys(need.run for need in needed)
    return [preset.cell(condition, row, seed) for seed in seeds for condition, row in wanted]
