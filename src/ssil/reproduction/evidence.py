"""Records of the paper's runs, found by what the paper calls them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ssil.benchmark.grid.cells import Cell, finished_record
from ssil.benchmark.record import Record, read_record
from ssil.benchmark.results import Run
from ssil.core.errors import UserError
from ssil.reproduction.conditions import MAIN, MIDDLE, Condition
from ssil.reproduction.presets import Preset
from ssil.reproduction.rows import LINES


class MissingError(Exception):
    """A run that has not been made."""


@dataclass(frozen=True)
class Need:
    """A row of a table in one of its columns."""

    condition: Condition
    line: str

    @property
    def run(self) -> tuple[Condition, str]:
        """What holds it. Joint training keeps every image: one run serves all memories."""
        row = LINES[self.line].row
        return self.condition._replace(level=MIDDLE, growing=False) if row == "joint" else self.condition, row


def needs(lines: Iterable[str], *conditions: Condition) -> tuple[Need, ...]:
    """All lines in all conditions."""
    return tuple(Need(condition, line) for condition in conditions or (MAIN,) for line in lines)


@dataclass(frozen=True)
class Evidence:
    """The finished runs of a ground under a directory, with the ground's settings."""

    root: Path
    preset: Preset
    seeds: tuple[int, ...]

    def __hash__(self) -> int:
        return hash((self.root, self.preset.name, self.seeds))

    def runs(self, condition: Condition, line: str) -> list[Run]:
        """By seed; a MissingError unless there is one for every seed."""
        return [self._run(condition, line, seed) for seed in self.seeds]

    def records(self, condition: Condition, line: str) -> list[Record]:
        """By seed."""
        return [run.record for run in self.runs(condition, line)]

    def has(self, condition: Condition, line: str) -> bool:
        """Whether it is there for every seed."""
        try:
            self.runs(condition, line)
        except MissingError:
            return False
        return True

    def begun(self, condition: Condition, lines: Iterable[str]) -> bool:
        """Whether one of the lines is there; joint training, whose one run serves all memories, does not count."""
        return any(self.has(condition, line) for line in lines if LINES[line].row != "joint")

    @cache  # noqa: B019  # as long as the evidence is looked at
    def _run(self, condition: Condition, line: str, seed: int) -> Run:
        cell = self.preset.cell(*Need(condition, line).run, seed)
        folder = self.root / cell.folder / LINES[line].rider
        try:
            record = read_record(folder) if finished_record(cell, self.root) else None
        except UserError as error:
            raise MissingError(cell.folder) from error
        if not record or not record.summary:
            raise MissingError(cell.folder)
        return Run(folder, record)


def cells(preset: Preset, needed: Iterable[Need], seeds: Sequence[int]) -> list[Cell]:
    """The runs that are needed, each once, seed by seed."""
    if not seeds:
        raise UserError("seeds: there must be at least 1")
    wanted = dict.fromkeys(need.run for need in needed)
    return [preset.cell(condition, row, seed) for seed in seeds for condition, row in wanted]
