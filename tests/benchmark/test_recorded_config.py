"""What the settings of a record must state."""

import json
from pathlib import Path
from typing import Any

import pytest

from ssil.benchmark.recorded_config import check_recorded_config, recorded_memory

GOLDEN = Path(__file__).parents[1] / "golden"


def golden() -> dict[str, Any]:
    config: dict[str, Any] = json.loads((GOLDEN / "record-v2.json").read_text())["config"]
    return config


@pytest.mark.parametrize("version", [1, 2])
def test_stored_settings_are_accepted(version: int) -> None:
    config = json.loads((GOLDEN / f"record-v{version}.json").read_text())["config"]
    check_recorded_config(config)
    assert recorded_memory(config) == {"kind": "fixed", "total": 12}


@pytest.mark.parametrize("name", ["method", "dataset", "seed", "options", "memory"])
def test_a_setting_that_readers_use_is_missed(name: str) -> None:
    config = golden()
    del config[name]
    with pytest.raises(ValueError, match=name):
        check_recorded_config(config)


@pytest.mark.parametrize(
    "change",
    [
        {"method": 3},
        {"seed": "x"},
        {"options": [1]},
        {"memory": {"kind": "none such"}},
        {"memory": {"kind": "fixed"}},
        {"memory": {"kind": "growing", "per_class": -1}},
        {"memory": -1},
        {"training": {}},
        {"training": {"epochs": 0, "later_epochs": None, "lr": 0.1, "milestones": [], "batch": 8}},
        {"riders": [1]},
        {"scorer": 1},
        {"lr": float("inf")},
        {"options": {"deep": [float("nan")]}},
    ],
)
def test_a_setting_that_is_not_what_it_should_be(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        check_recorded_config(golden() | change)
