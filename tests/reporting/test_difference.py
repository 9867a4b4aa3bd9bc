"""What differs between two runs, by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from report_runs import record, run, written
from ssil.benchmark.record import read_predictions, read_record, write_predictions, write_record
from ssil.benchmark.results import Run
from ssil.reporting.difference import difference

RIGHT = [c for c in range(6) for _ in range(4)]


def _read(folder: Path) -> Run:
    return Run(folder, read_record(folder))


def test_settings_and_results() -> None:
    found = difference(run("ft", options={"a": 1}), run("ssil", (90, 70, 50), options={}, seed=1))
    assert found.settings == {"method": ("ft", "ssil"), "seed": (0, 1), "options.a": (1, None)}
    assert found.results["last_top1"] == (40, 50)
    assert found.results["average_top1"] == (190 / 3, 70)
    assert found.results["forgetting"] == (35, 30)
    assert found.since == 2
    assert not found.none


def test_the_same_but_for_the_cost() -> None:
    slow = run("ft")
    slow.record.tasks[:] = [
        task.model_copy(update={"seconds": 99.0, "peak_memory_mb": 1.0}) for task in slow.record.tasks
    ]
    assert difference(run("ft"), slow).none
    assert difference(run("ft"), slow).results["seconds"] == (30, 297)


def test_riders_are_not_the_runs_own() -> None:
    assert difference(run("ft"), run("ft", riders={"il2m": {}})).none


def test_another_machine_is_a_difference() -> None:
    other = Run(Path(), record("ft").model_copy(update={"provenance": {"ssil": "0.2.0", "torch": "2.13"}}))
    assert difference(run("ft"), other).settings == {"ssil": ("0.1.0", "0.2.0")}


def test_as_far_as_both_are() -> None:
    found = difference(run("ft"), run("ft", (90, 60)))
    assert (found.done, found.tasks, found.since, found.none) == ((3, 2), 2, None, False)
    assert found.results["last_top1"] == (60, 60)
    assert difference(run("ft"), run("ft", ())).results == {}


def test_images_on_which_two_models_disagree(tmp_path: Path) -> None:
    wrong = [0] * 12 + RIGHT[12:]  # classes 1 and 2 are taken for class 0
    first, second = written(tmp_path / "a", predicted=wrong), written(tmp_path / "b", predicted=RIGHT)
    images = difference(_read(first), _read(second)).images
    assert images
    assert (images.count, images.disagree) == (24, 8)
    assert images.difference == pytest.approx(100 * 8 / 24)
    assert 10 < images.low < images.difference < images.high < 55


def test_classes_may_have_come_in_another_order(tmp_path: Path) -> None:
    """Class 0 of the one is class 1 of the other; in the data set's own numbers both predict the same."""
    first, second = written(tmp_path / "a", predicted=RIGHT), written(tmp_path / "b", predicted=RIGHT)
    turned = [0, 1, 2, 3, 5, 4]
    write_record(second, read_record(second).model_copy(update={"class_order": turned}))
    assert difference(_read(first), _read(second)).images is None  # the images are not in the same order
    _relabel(second, turned)
    images = difference(_read(first), _read(second)).images
    assert images
    assert images.disagree == 0


def _relabel(folder: Path, order: list[int]) -> None:
    """As if the test images had stayed where they are, while their classes came in another order."""
    found, number = read_predictions(folder, 3), torch.tensor(order)
    write_predictions(folder, 3, replace(found, labels=number[found.labels], top=number[found.top]))


@pytest.mark.parametrize("other", [{"data_fingerprint": "beef"}, {}])
def test_other_images_are_not_compared(other: dict[str, Any], tmp_path: Path) -> None:
    first = written(tmp_path / "a", predicted=RIGHT)
    second = written(tmp_path / "b", predicted=RIGHT if other else None, **other)
    assert difference(_read(first), _read(second)).images is None
