"""How long a method must train to see as many images as SS-IL."""

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cache
from math import ceil, floor
from typing import Any

from ssil.benchmark.config import make_config, override
from ssil.benchmark.training_budget import TrainingBudget, run_budget
from ssil.data.data_settings import DataSettings
from ssil.learning.learning_settings import ExecutionSettings, NetworkSettings
from ssil.learning.registry import configure

UNSTRETCHED = frozenset({"ssil", "joint"})
"""Rows whose schedule stays: SS-IL's, which is the measure, and joint training, which is no rival."""

IRRELEVANT = frozenset({*DataSettings.model_fields, *NetworkSettings.model_fields, *ExecutionSettings.model_fields})
"""Settings that change no budget, the number of images given."""


def equal_scale(settings: Mapping[str, Any], images: Sequence[int], wanted: int) -> float:
    """Return the `epoch_scale` under which a run sees the number of images nearest to `wanted`.

    Args:
        settings: The settings of the run.
        images: The training images of each class.
        wanted: The number of images to see in all.
    """

    def seen(scale: float) -> int:
        return counted(override(settings, {"epoch_scale": scale}), images).images

    whole = _epochs(settings)
    about = whole * wanted / seen(1.0)
    scales = [epochs / whole for epochs in range(max(1, floor(0.9 * about)), ceil(1.1 * about) + 1)]
    enough = bisect_left(scales, wanted, key=seen)  # a longer schedule sees no fewer images; counting takes seconds
    nearest = min(map(seen, scales[max(0, enough - 1) : enough + 1]), key=lambda images: abs(images - wanted))
    return scales[bisect_left(scales, nearest, key=seen)]


def _epochs(settings: Mapping[str, Any]) -> int:
    """Return the epochs of the method's own schedule."""
    return configure(settings["method"].partition(",")[0], settings.get("profile", "paper")).training.epochs


def counted(settings: Mapping[str, Any], images: Sequence[int]) -> TrainingBudget:
    """Return what the training of a run costs, from the cache if it was counted before."""
    decisive = {name: value for name, value in settings.items() if name not in IRRELEVANT}
    return _counted(json.dumps(decisive, sort_keys=True), tuple(images))


@cache
def _counted(settings: str, images: tuple[int, ...]) -> TrainingBudget:
    return run_budget(make_config(json.loads(settings)), images)
