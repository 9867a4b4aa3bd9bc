"""An update that is killed at any moment leaves a working model, the old one or the new; the next one tidies up."""

from pathlib import Path
from typing import Any

import pytest

import kill_points

pytestmark = pytest.mark.slow

MOMENTS = {
    "read": (1, 9, 15),
    "step": (1, 2, 3, 4),
    "write": (1, 5, 11, 12, 13, 14),
    "flush": (2, 12, 22, 26, 28),
    "rename": (1, 11, 12, 13, 14, 15),
    "renamed": (1, 12, 13, 14, 15),
}
CASES: dict[str, tuple[str, int] | tuple[str, int, str]] = {
    **{f"{event} {nth}": (event, nth) for event, times in MOMENTS.items() for nth in times},
    **{f"first update, {event} {nth}": (event, nth, "") for event, nth in (("step", 2), ("write", 3), ("rename", 24))},
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return kill_points.results(Path(__file__).with_name("killed.py"), tmp_path_factory.mktemp("killed"), cases=CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_killed_update_leaves_a_model_that_works(results: dict[str, Any], name: str) -> None:
    found = results[name]
    assert found["killed"]
    old = {None: [], 1: ["ant", "bee"], 2: ["ant", "bee", "cat"]}[found["version"]]
    assert found["right"] or not old
    assert found["names"] == [*old, "dog", "elk"]
    assert found["newest"]
    assert found["litter"] == []


def test_some_kills_come_before_and_some_after_the_swap(results: dict[str, Any]) -> None:
    assert {found["version"] for found in results.values()} == {None, 1, 2}
