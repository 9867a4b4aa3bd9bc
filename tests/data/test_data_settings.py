from typing import Any

import pytest

from ssil.core.errors import UserError
from ssil.core.settings import validated
from ssil.data.data_settings import DataSettings

COUNTS = ("classes", "min_per_class", "max_per_class", "train_per_class", "test_per_class", "image_size")


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("value", [0, -1])
def test_counts_below_one_are_refused(name: str, value: int) -> None:
    with pytest.raises(UserError, match=f"{name}: {value} does not fit: input should be greater than or equal to 1"):
        validated(DataSettings, {name: value})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"least": 0.0}, "imbalance: 0.0 does not fit"),
        ({"validate": 1.0}, "validate: 1.0 does not fit"),
        ({"validation": -0.5}, "validate: -0.5 does not fit"),
        ({"augment": "spin"}, "augment: 'spin' is not known; give crop, shift, none, or FILE.py:function"),
        ({"clases": 3}, "clases: no such setting; did you mean 'classes'"),
        ({"zzz": 3}, "zzz: no such setting; see `ssil run --help`"),
    ],
)
def test_values_that_do_not_fit_are_refused_in_one_line(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        validated(DataSettings, values)
