"""The cells of a grid, one run each: methods x scenarios x seeds, as a TOML file lists them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from ssil.benchmark.config import RunConfig, by_field_name, make_config, override, read_toml, to_flags
from ssil.benchmark.record import Record, read_record
from ssil.benchmark.run_identity import identity
from ssil.benchmark.run_setup import expected_record, settings_without_data
from ssil.core.errors import UserError, did_you_mean
from ssil.learning.registry import ConfiguredMethod

Expand = Callable[[Mapping[str, Any]], Mapping[str, Any]]
KEYS = ("settings", "seeds", "scenarios", "methods")
"""The keys of a grid's TOML file."""


@dataclass(frozen=True)
class Cell:
    """One run of a grid: a row (a method and its settings) in a scenario, with a seed."""

    scenario: str
    row: str
    seed: int
    settings: Mapping[str, Any] = field(hash=False)
    """The settings of the run, without its seed and its directory."""

    @property
    def folder(self) -> Path:
        """The run directory, below the grid's."""
        return Path(self.scenario) / f"{self.row}-{self.seed}"

    @property
    def config(self) -> RunConfig:
        """The configuration of the run; UserError if a setting does not fit."""
        return make_config({**self.settings, "seed": self.seed})

    def described(self) -> tuple[ConfiguredMethod, dict[str, Any]]:
        """Return the method and the settings that the record will state; a UserError names the cell."""
        try:
            return settings_without_data(self.config)
        except UserError as error:
            raise UserError(f"{self.folder}: {error}") from None

    def command(self, root: Path) -> list[str]:
        """Return the command that carries out the run."""
        return ["ssil", "run", *to_flags(self.settings), "--seed", str(self.seed), "--out", str(root / self.folder)]


def finished_record(cell: Cell, root: Path) -> Record | None:
    """Return the record of a cell that is finished with exactly these settings, or None."""
    folder = root / cell.folder
    if not (folder / "record.json").exists():
        return None
    try:
        record = read_record(folder)
        configured, wanted = expected_record(cell.config, record)
    except UserError:  # the run itself is going to report it
        return None
    return record if record.summary and identity(record, configured) == identity(wanted, configured) else None


def read_grid(path: Path, changes: Mapping[str, Any] | None = None, expand: Expand = dict) -> list[Cell]:
    """Read the cells of a grid from its TOML file, ordered by seed, and check the settings of each.

    `settings` (a table, or a file's path) are those of all runs. Each table of `[scenarios]` and of `[methods]` has
    settings that override them; a method's `scenarios` are those in which it is run (default: all), its `seeds` those
    with which it is run (default: the grid's). `changes` override the settings of every run, and `expand` replaces
    names of whole groups of settings, such as `protocol`, by the settings themselves.
    """
    grid = read_toml(path)
    _refuse_unknown(path, grid)
    shared = _shared(path, grid.get("settings", {}))
    scenarios, methods = (_tables(path, grid, key) for key in ("scenarios", "methods"))
    seeds = _seeds(path, grid.get("seeds", [0]))
    rows = list(_rows(path, methods, scenarios or {"": {}}))
    cells = [
        Cell(name, row, seed, expand(override(override(override(shared, scenario), settings), changes or {})))
        for seed, (row, settings, (name, scenario), own) in product(_all_seeds(seeds, methods), rows)
        if seed in (seeds if own is None else own)
    ]
    for cell in cells:
        cell.described()
    return cells


def _seeds(path: Path, given: Any) -> list[int]:
    if not isinstance(given, list) or not all(type(seed) is int for seed in given):
        raise UserError(f"seeds: {given!r} in {path} is not a list of numbers, such as [0, 1, 2]")
    return given


def _all_seeds(seeds: list[int], methods: Mapping[str, Mapping[str, Any]]) -> list[int]:
    return sorted({*seeds, *(seed for method in methods.values() for seed in method.get("seeds", ()))})


def _rows(
    path: Path, methods: Mapping[str, Any], scenarios: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, Any], tuple[str, Any], list[int] | None]]:
    """Yield for each row and scenario: the row's name, its settings, the scenario, and the row's own seeds."""
    for row, table in methods.items():
        chosen = table.get("scenarios", list(scenarios))
        if unknown := [name for name in chosen if name not in scenarios]:
            raise UserError(f"methods.{row}: {path} has no scenario {unknown[0]!r}; it has: {', '.join(scenarios)}")
        own = _seeds(path, table["seeds"]) if "seeds" in table else None
        settings = {"method": row} | {key: table[key] for key in table if key not in {"scenarios", "seeds"}}
        if settings["method"] != row and "," not in str(settings["method"]):  # else each method has a name of its own
            settings = {"name": row, **settings}
        for name in chosen:
            named = {"stream_name": name} if name else {}
            yield row, by_field_name(settings), (name, named | by_field_name(scenarios[name])), own


def _shared(path: Path, settings: Any) -> dict[str, Any]:
    """Return the settings of all runs; the path of a file of settings starts at the grid's folder."""
    if not isinstance(settings, str | dict):
        raise UserError(f"settings: {settings!r} in {path} is neither a table nor a file's path")
    return by_field_name(read_toml(path.parent / settings) if isinstance(settings, str) else settings)


def _tables(path: Path, grid: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    tables = grid.get(key, {})
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise UserError(f"{key}: {path} needs a table for each, such as [{key}.NAME]")
    if key == "methods" and not tables:
        raise UserError(f"methods: {path} names none; add tables such as [methods.ssil]")
    return tables


def _refuse_unknown(path: Path, grid: Mapping[str, Any]) -> None:
    for key in grid:
        if key not in KEYS:
            hint = did_you_mean(key, KEYS, f"a grid has: {', '.join(KEYS)}")
            raise UserError(f"{key}: no such part of a grid ({path}); {hint}")
