"""The input that weights need."""

from typing import Any

import pytest

from ssil.core.errors import UserError
from ssil.core.network_input import NetworkInput
from ssil.core.settings import validated


@pytest.mark.parametrize(
    "changed",
    [
        {"mean": (0.5,)},
        {"std": (0.5, 0.5, 0.0)},
        {"std": (0.5, 0.5, float("nan"))},
        {"mean": (0.5, 0.5), "std": (0.5, 0.5)},
        {"size": 0},
        {"size": 4096},
        {"crop": 0.0},
        {"crop": 1.5},
        {"crop": "half"},
        {"interpolation": "nearest"},
        {"unknown": 1},
    ],
)
def test_values_that_make_no_sense_are_refused(changed: dict[str, Any]) -> None:
    validated(NetworkInput, {"size": 224})
    with pytest.raises(UserError):
        validated(NetworkInput, {"size": 224, **changed})


def test_it_survives_json() -> None:
    needed = NetworkInput(size=32, mean=(0.1,), std=(0.7,), interpolation="bicubic", crop=0.875)
    assert NetworkInput.model_validate_json(needed.model_dump_json()) == needed
    assert needed.channels == 1
