"""From a configuration to the set-up of a run."""

from pathlib import Path
from typing import Any

import pytest

import tiny_runs
from ssil.benchmark.run_setup import set_up
from ssil.benchmark.runner import run
from ssil.core.errors import UserError


def test_validation_takes_its_images_from_training(dataset: Path) -> None:
    whole, part = (set_up(tiny_runs.config(dataset, tasks=2, validate=share)).stream for share in (0, 0.4))
    assert (len(whole.train), len(whole.test)) == (30, 24)
    assert (len(part.train), len(part.test)) == (18, 12)


def test_a_class_order_from_a_seed_or_a_file(dataset: Path, tmp_path: Path) -> None:
    file = tmp_path / "order.txt"
    file.write_text("5\n3\n1\n0\n2\n4\n")
    orders = [
        set_up(tiny_runs.config(dataset, tasks=2, seed=4, class_order=order)).record.class_order
        for order in (None, 4, "4", str(file))
    ]
    assert orders[0] == orders[1] == orders[2]
    assert orders[3] == [5, 3, 1, 0, 2, 4]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"memory": 5}, r"memory: 5 is less than one exemplar for each of 6 classes; give at least that"),
        ({"tasks": 7}, r"tasks: 7 tasks can't share 6 classes; give a number from 1 to 6"),
        ({"lr": [0.1, 0.2]}, r"lr: \[0.1, 0.2\] has 2 values for 2 milestones; .*"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_written(
    dataset: Path, tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=f"^{message}$"):
        run(tiny_runs.config(dataset, **{"tasks": 2, "out": tmp_path / "out"} | settings))
    assert not (tmp_path / "out").exists()
