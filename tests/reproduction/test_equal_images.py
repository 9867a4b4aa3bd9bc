"""How long a method must train to see a number of images: as a search over all schedules finds it, in fewer steps."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ssil.benchmark.config import override
from ssil.benchmark.training_budget import TrainingBudget
from ssil.reproduction import equal_images
from ssil.reproduction.equal_images import counted, equal_scale

IMAGES = (20,) * 9


@pytest.mark.parametrize("method", ["ft", "eeil", "lucir"])
@pytest.mark.parametrize("wanted", [1, 3_000, 20_000, 20_001])
def test_the_scale_is_the_first_of_those_that_come_nearest(method: str, wanted: int) -> None:
    settings = {"method": method, "tasks": 3, "memory": 30, "batch": 8}
    whole = equal_images._epochs(settings)
    seen = [counted(override(settings, {"epoch_scale": epochs / whole}), IMAGES).images for epochs in range(1, 400)]
    nearest = min(range(len(seen)), key=lambda place: abs(seen[place] - wanted))
    assert equal_scale(settings, IMAGES, wanted) == (nearest + 1) / whole


def test_few_schedules_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()

    def counting(settings: Mapping[str, Any], images: Sequence[int]) -> TrainingBudget:
        asked.append(str(settings))
        return counted(settings, images)

    monkeypatch.setattr(equal_images, "counted", counting)
    equal_scale({"method": "ft", "tasks": 3, "memory": 30, "batch": 8}, IMAGES, 30_000)
    assert len({*asked}) < 12
