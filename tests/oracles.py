"""The equations again, literally: Python floats (float64) and loops, nothing shared with the package."""

import math
from collections.abc import Callable, Sequence

from torch import Tensor

Vector = Sequence[float]


def softmax(scores: Vector) -> list[float]:
    top = max(scores)
    weights = [math.exp(score - top) for score in scores]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def cross_entropy(scores: Vector, label: int) -> float:
    return -math.log(softmax(scores)[label])


def separated_cross_entropy(scores: Vector, label: int, old: int) -> float:
    if label < old:
        return cross_entropy(scores[:old], label)
    return cross_entropy(scores[old:], label - old)


def divergence(target: Vector, student: Vector) -> float:
    total = 0.0
    for p, q in zip(target, student, strict=True):
        total += p * (math.log(p) - math.log(q))
    return total


def gkd(student: Vector, teacher: Vector, temperature: float) -> float:
    return tkd(student, teacher, [0, len(teacher)], temperature)


def tkd(student: Vector, teacher: Vector, bounds: Sequence[int], temperature: float) -> float:
    total = 0.0
    for block in range(len(bounds) - 1):
        classes = range(bounds[block], bounds[block + 1])
        target = softmax([teacher[c] / temperature for c in classes])
        total += divergence(target, softmax([student[c] / temperature for c in classes]))
    return total


def slopes(loss: Callable[[list[float]], float], scores: Vector, step: float = 1e-5) -> list[float]:
    """The gradient by central differences, one score at a time."""
    result = []
    for c in range(len(scores)):
        higher, lower = list(scores), list(scores)
        higher[c] += step
        lower[c] -= step
        result.append((loss(higher) - loss(lower)) / (2 * step))
    return result


def rows(scores: Tensor) -> list[list[float]]:
    """A tensor (B, C) as lists of floats."""
    return [[float(value) for value in row] for row in scores]


def herding_gap(features: Sequence[Vector], picked: Sequence[int]) -> float:
    """The distance from the mean of all to the mean of the picked (features as given: of unit norm)."""
    mean, centre = [], []
    for d in range(len(features[0])):
        mean.append(math.fsum(f[d] for f in features) / len(features))
        centre.append(math.fsum(features[i][d] for i in picked) / len(picked))
    return math.dist(mean, centre)
