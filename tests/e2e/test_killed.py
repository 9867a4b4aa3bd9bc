"""A run killed at any moment goes on bit for bit: its weights, its predictions and its record."""

import random
from pathlib import Path
from typing import Any

import pytest

import kill_points

pytestmark = pytest.mark.slow

Kills = list[tuple[str, float]]
STREAM = {"method": "ssil", "tasks": "3", "checkpoint_every": "2"}
LONE = {"method": "ft", "tasks": "1", "checkpoint_every": "1000"}

MOMENTS = {
    "step": (1, 3, 5, 12),
    "write": (1, 2, 3, 12, 29),
    "flush": (1, 21, 58),
    "rename": (1, 3, 9, 11, 29),
    "renamed": (9, 11, 28),
    "unlink": (1, 4),
}
CASES: dict[str, tuple[dict[str, Any], Kills]] = {
    **{f"{event} {nth}": (STREAM, [(event, nth)]) for event, times in MOMENTS.items() for nth in times},
    "again and again": (STREAM, [("step", 4), ("rename", 3), ("write", 5), ("step", 3), ("flush", 2)]),
    **{f"rename {nth} of a lone task": (LONE, [("rename", nth)]) for nth in (3, 4, 6)},
}


def outcomes(folder: Path, cases: dict[str, tuple[dict[str, Any], Kills]]) -> dict[str, Any]:
    asked = {name: {"settings": settings, "kills": kills} for name, (settings, kills) in cases.items()}
    return kill_points.results(Path(__file__).with_name("killed.py"), folder, cases=asked)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return outcomes(tmp_path_factory.mktemp("killed"), CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_killed_run_goes_on(results: dict[str, Any], name: str) -> None:
    _, kills = CASES[name]
    assert results[name] == {"kills": len(kills), "differences": []}


def test_a_run_killed_by_the_clock_goes_on(tmp_path: Path) -> None:
    """The moments are seeded, but what they hit depends on the machine."""
    times = random.Random(0)
    cases = {f"case {n}": (STREAM, [("clock", times.uniform(0, 0.5)) for _ in range(3)]) for n in range(6)}
    for outcome in outcomes(tmp_path, cases).values():
        assert outcome["differences"] == []
