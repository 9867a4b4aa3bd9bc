"""A grid's TOML file: methods x scenarios x seeds."""

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from ssil.benchmark.config import by_field_name, override, read_toml
from ssil.benchmark.grid.cells import Cell
from ssil.core.errors import UserError, did_you_mean

KEYS = ("settings", "seeds", "scenarios", "methods")


def read_spec(path: Path) -> list[Cell]:
    """The cells of a grid, seed by seed; every one is checked before anything is run.

    `settings` (a table, or a file's path) are those of all runs. Each table of `[scenarios]` and of `[methods]` has
    settings that stand over them; a method's `scenarios` are those in which it is run (default: all), its `seeds`
    those with which (default: the grid's).
    """
    spec = read_toml(path)
    _refuse_unknown(path, spec)
    shared = _shared(path, spec.get("settings", {}))
    scenarios, methods = (_tables(path, spec, key) for key in ("scenarios", "methods"))
    seeds = _seeds(path, spec.get("seeds", [0]))
    rows = list(_rows(path, methods, scenarios or {"": {}}))
    cells = [
        Cell(name, row, seed, override(override(shared, scenario), settings))
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
    """Row by row and scenario by scenario: its name, its settings, the scenario, its own seeds."""
    for row, table in methods.items():
        chosen = table.get("scenarios", list(scenarios))
        if unknown := [name for name in chosen if name not in scenarios]:
            raise UserError(f"methods.{row}: {path} has no scenario {unknown[0]!r}; it has: {', '.join(scenarios)}")
        own = _seeds(path, table["seeds"]) if "seeds" in table else None
        settings = {"method": row} | {key: table[key] for key in table if key not in {"scenarios", "seeds"}}
        for name in chosen:
            yield row, by_field_name(settings), (name, by_field_name(scenarios[name])), own


def _shared(path: Path, settings: Any) -> dict[str, Any]:
    """A file of settings is looked for beside the grid's own."""
    if not isinstance(settings, str | dict):
        raise UserError(f"settings: {settings!r} in {path} is neither a table nor a file's path")
    return by_field_name(read_toml(path.parent / settings) if isinstance(settings, str) else settings)


def _tables(path: Path, spec: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    tables = spec.get(key, {})
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise UserError(f"{key}: {path} needs a table for each, such as [{key}.NAME]")
    if key == "methods" and not tables:
        raise UserError(f"methods: {path} names none; add tables such as [methods.ssil]")
    return tables


def _refuse_unknown(path: Path, spec: Mapping[str, Any]) -> None:
    for key in spec:
        if key not in KEYS:
            hint = did_you_mean(key, KEYS, f"a grid has: {', '.join(KEYS)}")
            raise UserError(f"{key}: no such part of a grid ({path}); {hint}")
