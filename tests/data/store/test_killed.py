"""A store whose making is killed at any moment comes out the same, byte for byte."""

import random
from pathlib import Path
from typing import Any

import pytest

import kill_points

Kills = list[tuple[str, float]]

MOMENTS = {
    "image": (1, 4, 8, 18),
    "write": (1, 2, 3, 9, 20, 33),
    "flush": (1, 2, 3, 8, 13),
    "rename": (1, 2, 4, 5, 6, 7),
    "renamed": (1, 2, 4, 5, 6),
}
CASES: dict[str, Kills] = {
    **{f"{event} {nth}": [(event, nth)] for event, times in MOMENTS.items() for nth in times},
    "again and again": [("image", 12), ("rename", 1), ("write", 5), ("flush", 3), ("renamed", 2)],
}


def outcomes(photos: Path, out: Path, cases: dict[str, Kills]) -> dict[str, Any]:
    return kill_points.results(Path(__file__).with_name("killed.py"), photos, out, cases=cases)


@pytest.fixture(scope="module")
def results(painted: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return outcomes(painted, tmp_path_factory.mktemp("killed"), CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_killed_store_comes_out_the_same(results: dict[str, Any], name: str) -> None:
    assert results[name] == {"kills": len(CASES[name]), "differences": []}


@pytest.mark.slow
def test_a_store_killed_by_the_clock_comes_out_the_same(painted: Path, tmp_path: Path) -> None:
    """The moments are seeded, but what they hit depends on the machine."""
    times = random.Random(0)
    cases: dict[str, Kills] = {f"case {n}": [("clock", times.uniform(0, 0.15)) for _ in range(3)] for n in range(10)}
    for outcome in outcomes(painted, tmp_path, cases).values():
        assert outcome["differences"] == []
