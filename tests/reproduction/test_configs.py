"""The settings of the paper's supplement, as files: a GPU's user starts from them."""

from pathlib import Path
from typing import Any

import pytest

from ssil.cli.flags import resolve
from ssil.learning.registry import configure
from ssil.reproduction.paper_scenarios import find

FOLDER = Path(__file__).parents[2] / "configs/imagenet-t10-20k"
EPOCHS: dict[str, Any] = {
    "icarl": (60, None, 0.1, (20, 30, 40, 50), 0.2, 128),
    "ft": (100, 25, 0.1, (40, 80), 0.1, 128),
    "il2m": (100, 25, 0.1, (40, 80), 0.1, 128),
    "eeil": (40, None, 0.1, (10, 20, 30), 0.1, 128),
    "bic": (100, None, 0.1, (30, 60, 90), 0.1, 256),
    "lucir": (90, None, 0.1, (30, 60), 0.1, 128),
    "podnet": (90, None, 0.05, (), 0.1, 64),
    "ssil": (100, None, 0.1, (40, 80), 0.1, 128),
}
"""Epochs, those of later tasks, rate, milestones, decay, batch: Table S1, typed from the paper."""


def test_a_file_for_each_method_of_table_1() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(EPOCHS)


@pytest.mark.parametrize("name", EPOCHS)
def test_a_file_holds_the_papers_settings(name: str) -> None:
    config = resolve(FOLDER / f"{name}.toml", None, {})
    scenario = find("imagenet-base-fixed-t10-20k")
    assert (config.method, config.tasks, config.memory, config.backbone) == (name, 10, 20_000, "resnet18")
    assert (config.dataset, config.classes, config.large_base) == (scenario.dataset, 1_000, False)
    given = configure(name, config.profile, config.training, config.options, increments=config.tasks)
    training = given.training
    found = (training.epochs, training.later_epochs, training.lr, training.milestones, training.decay, training.batch)
    assert found == EPOCHS[name]
    assert (training.momentum, training.weight_decay, training.lr_by_task) == (0.9, 1e-4, False)
    assert training == configure(name, "paper", increments=10).training
