"""An update that is killed at any moment of its publication leaves a model that works: the old one or the new."""

from pathlib import Path
from typing import Any

import pytest

import fuse

MOMENTS = {
    "write": (1, 2, 5, 9, 13),
    "flush": (1, 2, 6, 12, 20, 26),
    "rename": (1, 2, 8, 12, 13, 14),
    "renamed": (1, 9, 12, 13),
}
CASES = {f"{event} {nth}": (event, nth) for event, times in MOMENTS.items() for nth in times}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return fuse.told(Path(__file__).with_name("killed.py"), tmp_path_factory.mktemp("killed"), cases=CASES)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_killed_update_leaves_a_model_that_works(results: dict[str, Any], name: str) -> None:
    found = results[name]
    assert found["killed"]
    assert found["whole"]
    assert found["next"] in {2, 3}


@pytest.mark.slow
def test_some_kills_come_before_and_some_after_the_swap(results: dict[str, Any]) -> None:
    assert {found["version"] for found in results.values()} == {1, 2}
