"""Images of no known class: recognised by scores of which none stands out. Nothing here imports torch.

The *lead* of an image is its highest score above the mean of the next highest ones, of its `RIVALS`. Unlike a distance
to a class it can be read from the scores of every method, and needs no term that all classes share. On photographs it
told unknown classes from known ones better than other functions of the scores, and accepted fewer unknown images than
Mahalanobis distances did (docs/results/unknown.md).
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.floating]
RIVALS = 5
"""The scores with which the highest is compared; there are fewer where classes are."""


class Threshold(NamedTuple):
    """The lead below which an image is unknown."""

    lead: float
    rivals: int | None = RIVALS
    """With how many of the next highest scores the highest is compared; None, in versions made before there was a
    choice, for the mean of all scores, the highest included."""


def leads(scores: Scores, rivals: int | None = RIVALS) -> NDArray[np.float64]:
    """Return how far the highest of an image's scores is above the next ones, for scores (N, classes).

    >>> leads(np.array([[5.0, 1.0, 0.0], [2.0, 2.0, 2.0]])).tolist()
    [4.5, 0.0]
    >>> leads(np.array([[5.0, 1.0, 0.0]]), rivals=1).tolist(), leads(np.array([[5.0, 1.0, 0.0]]), rivals=None).tolist()
    ([4.0], [3.0])
    """
    falling = -np.sort(-scores.astype(np.float64), 1)
    others = falling if rivals is None else falling[:, 1 : 1 + rivals]
    return np.asarray(falling[:, 0] - others.mean(1))


def fit_threshold(scores: Scores, percent: float) -> Threshold | None:
    """Return the threshold below which are at most `percent` of the images with these scores.

    Return None, which calls no image unknown, for a percentage of 0, or if it is of less than one image.

    >>> scores = np.array([[float(n), 0.0] for n in range(40)])
    >>> fit_threshold(scores, 5), fit_threshold(scores[:19], 5), fit_threshold(scores, 0)
    (Threshold(lead=2.0, rivals=5), None, None)
    """
    lost = math.floor(len(scores) * percent / 100)
    return Threshold(float(np.sort(leads(scores))[lost])) if lost else None


def are_unknown(scores: Scores, threshold: Threshold | None) -> NDArray[np.bool_]:
    """Return for each image whether it is of no known class; no image is if there is no threshold."""
    if threshold is None:
        return np.zeros(len(scores), dtype=bool)
    return np.asarray(leads(scores, threshold.rivals) < threshold.lead)


def stated_threshold(threshold: Threshold | None) -> dict[str, float | int | None] | None:
    """Return a threshold as a model file states it."""
    return threshold and threshold._asdict()


def checked_threshold(value: object) -> Threshold | None:
    """Return a threshold of a model file; raise ValueError or TypeError if it is none.

    Versions made before there was a choice state the lead alone, over the mean of all scores.
    """
    if value is None:
        return None
    found = Threshold(**value) if isinstance(value, Mapping) else Threshold(value, None)  # type: ignore[arg-type]
    if type(found.lead) not in (int, float) or not math.isfinite(found.lead):
        raise ValueError(f"threshold {value!r}")
    if found.rivals is not None and (type(found.rivals) is not int or found.rivals < 1):
        raise ValueError(f"threshold {value!r}")
    return found._replace(lead=float(found.lead))
