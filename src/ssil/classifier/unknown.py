"""Images of no known class: recognised by scores that are nearly equal. Nothing here imports torch.

The *lead* of an image is its highest score above the mean of its scores over all classes. Unlike a distance to a class
it can be read from the scores of every method, and needs no term that all classes share. On photographs it told
unknown classes from known ones as well as Mahalanobis distances did, or better (docs/results/unknown.md).
"""

import math

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.floating]


def leads(scores: Scores) -> NDArray[np.float64]:
    """Return the highest of an image's scores above their mean, for scores (N, classes).

    >>> leads(np.array([[5.0, 1.0, 0.0], [2.0, 2.0, 2.0]])).tolist()
    [3.0, 0.0]
    """
    exact = scores.astype(np.float64)
    return np.asarray(exact.max(1) - exact.mean(1))


def fit_threshold(scores: Scores, percent: float) -> float | None:
    """Return the lead below which an image is unknown: below it are at most `percent` of the images with these scores.

    Return None, which calls no image unknown, for a percentage of 0, or if it is of less than one image.

    >>> scores = np.array([[float(n), 0.0] for n in range(40)])
    >>> fit_threshold(scores, 5), fit_threshold(scores[:19], 5), fit_threshold(scores, 0)
    (1.0, None, None)
    """
    lost = math.floor(len(scores) * percent / 100)
    return float(np.sort(leads(scores))[lost]) if lost else None


def are_unknown(scores: Scores, threshold: float | None) -> NDArray[np.bool_]:
    """Return for each image whether it is of no known class; no image is if there is no threshold."""
    return np.asarray(leads(scores) < (-math.inf if threshold is None else threshold))


def checked_threshold(value: object) -> float | None:
    """Return a threshold of a model file; raise ValueError or TypeError if it is none."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"threshold {value!r}")
    return float(value)
