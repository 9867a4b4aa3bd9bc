"""Labels that an estimator is given: names, or whole numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import assert_all_finite, column_or_1d

from ssil.core.errors import UserError

LARGEST = 10**18
"""Whole numbers up to this size are labels: they fit into 64 bits."""


def label_array(y: ArrayLike) -> NDArray[Any]:
    """Return labels as an array of integers or of text; raise UserError if they are something else, or mixed."""
    given = np.asarray(column_or_1d(y, warn=True))
    assert_all_finite(given, input_name="y")
    kinds = {_kind(label) for label in given.tolist()}
    if len(kinds) > 1 or "other" in kinds:
        raise UserError("y: labels are continuous, mixed or of another type; give whole numbers, or text")
    return given.astype(np.int64) if kinds == {"integer"} else given.astype(str)


def _kind(label: object) -> str:
    if isinstance(label, bool | int | float) and label == label // 1 and abs(label) < LARGEST:
        return "integer"
    return "text" if isinstance(label, str) else "other"


def are_integers(labels: NDArray[Any]) -> bool:
    """Return whether labels are whole numbers."""
    return bool(np.issubdtype(labels.dtype, np.integer))


def named_labels(names: Sequence[str], integers: bool) -> NDArray[Any]:
    """Return the names of classes as the labels that were given."""
    return np.array([int(name) for name in names] if integers else names)
