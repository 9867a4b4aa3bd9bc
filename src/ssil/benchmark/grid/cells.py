"""One run among many."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ssil.benchmark.config import RunConfig, make_config, to_flags
from ssil.benchmark.record import Record, read_record
from ssil.benchmark.run_identity import identity
from ssil.benchmark.run_setup import expected_record, settings_without_data
from ssil.core.errors import UserError
from ssil.learning.registry import ConfiguredMethod


@dataclass(frozen=True)
class Cell:
    """A row (a method and its settings) in a scenario, with a seed."""

    scenario: str
    row: str
    seed: int
    settings: Mapping[str, Any] = field(hash=False)
    """Of the run, all but the seed and its directory."""

    @property
    def place(self) -> Path:
        """Where it is below the grid's directory."""
        return Path(self.scenario) / f"{self.row}-{self.seed}"

    @property
    def config(self) -> RunConfig:
        """Of the run; a UserError says what is wrong with the settings."""
        return make_config({**self.settings, "seed": self.seed})

    def described(self) -> tuple[ConfiguredMethod, dict[str, Any]]:
        """The method, and what the record is going to say of all settings; a UserError names the cell."""
        try:
            return settings_without_data(self.config)
        except UserError as error:
            raise UserError(f"{self.place}: {error}") from None

    def command(self, root: Path) -> list[str]:
        """What one would type."""
        return ["ssil", "run", *to_flags(self.settings), "--seed", str(self.seed), "--out", str(root / self.place)]


def finished(cell: Cell, root: Path) -> Record | None:
    """The record of a cell that is done, with these very settings."""
    folder = root / cell.place
    if not (folder / "record.json").exists():
        return None
    try:
        record = read_record(folder)
        configured, wanted = expected_record(cell.config, record)
    except UserError:  # which its run is going to say
        return None
    return record if record.summary and identity(record, configured) == identity(wanted, configured) else None
