"""The equations once more, written literally: Python floats (float64) and loops, nothing shared with the package."""

import math
from collections.abc import Callable, Sequence

from torch import Tensor

Vector = Sequence[float]
Map = Sequence[Sequence[Vector]]
"""Channels of rows of values."""


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


def asymmetric_cross_entropy(scores: Vector, label: int, old: int) -> float:
    if label < old:
        return cross_entropy(scores, label)
    return cross_entropy(scores[old:], label - old)


def derpp(
    scores: Sequence[Vector],
    labels: Sequence[int],
    exemplars: Sequence[bool],
    stored: Sequence[Vector],
    alpha: float,
    beta: float,
) -> tuple[float, float, float]:
    """The three terms of DER++, Eq. 6, each a mean over its images; NaN marks classes that came later."""
    new, replayed, distances = [], [], []
    for image, label in enumerate(labels):
        if not exemplars[image]:
            new.append(cross_entropy(scores[image], label))
            continue
        replayed.append(beta * cross_entropy(scores[image], label))
        total, classes = 0.0, 0
        for c, then in enumerate(stored[image]):
            if not math.isnan(then):
                total += (scores[image][c] - then) ** 2
                classes += 1
        distances.append(alpha * total / classes)
    return math.fsum(new) / len(new), math.fsum(replayed) / len(replayed), math.fsum(distances) / len(distances)


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
    """The distance from the mean of all features (of unit norm) to the mean of the picked ones."""
    mean, centre = [], []
    for d in range(len(features[0])):
        mean.append(math.fsum(f[d] for f in features) / len(features))
        centre.append(math.fsum(features[i][d] for i in picked) / len(picked))
    return math.dist(mean, centre)


def unit(vector: Vector) -> list[float]:
    norm = math.sqrt(math.fsum(value * value for value in vector))
    return [value / norm for value in vector]


def cosine(a: Vector, b: Vector) -> float:
    return math.fsum(x * y for x, y in zip(unit(a), unit(b), strict=True))


def cosine_logits(feature: Vector, rows: Sequence[Vector], scale: float) -> list[float]:
    return [scale * cosine(feature, row) for row in rows]


def proxy_scores(feature: Vector, classes: Sequence[Sequence[Vector]]) -> list[float]:
    """PODNet's class scores, the similarities as minus the squared distance of unit vectors."""
    scores = []
    for proxies in classes:
        similarities = [-(math.dist(unit(feature), unit(proxy)) ** 2) for proxy in proxies]
        total = 0.0
        for weight, similarity in zip(softmax(similarities), similarities, strict=True):
            total += weight * similarity
        scores.append(total)
    return scores


def margin_ranking(cosines: Vector, label: int, old: int, margin: float, top: int) -> float:
    """LUCIR, Eq. 8, for a sample of an old class."""
    hardest = sorted(cosines[old:], reverse=True)[:top]
    total = 0.0
    for rival in hardest:
        total += max(0.0, margin - cosines[label] + rival)
    return total / len(hardest)


def over_width(maps: Map) -> list[float]:
    return [math.fsum(value**2 for value in row) for channel in maps for row in channel]


def over_height(maps: Map) -> list[float]:
    return [math.fsum(row[x] ** 2 for row in channel) for channel in maps for x in range(len(channel[0]))]


def pod_spatial(student: Sequence[Map], teacher: Sequence[Map], separate: bool) -> float:
    total = 0.0
    for a, b in zip(student, teacher, strict=True):
        if separate:
            total += math.dist(unit(over_width(a)), unit(over_width(b)))
            total += math.dist(unit(over_height(a)), unit(over_height(b)))
        else:
            total += math.dist(unit(over_width(a) + over_height(a)), unit(over_width(b) + over_height(b)))
    return total / len(student)


def nca(scores: Vector, label: int) -> float:
    top, total = max(scores), 1.0
    for c, score in enumerate(scores):
        if c != label:
            total += math.exp(score - top)
    return -(scores[label] - top) + math.log(total)


def nca_hinged(scores: Vector, label: int, scale: float, margin: float) -> float:
    rest = math.fsum(math.exp(scale * score) for c, score in enumerate(scores) if c != label)
    return max(0.0, -math.log(math.exp(scale * (scores[label] - margin)) / rest)) if rest else 0.0


def sigmoid_cross_entropy(scores: Vector, targets: Vector) -> float:
    """iCaRL's original loss (Alg. 3): the mean over the outputs of their binary cross-entropies."""
    total = 0.0
    for score, target in zip(scores, targets, strict=True):
        probability = 1 / (1 + math.exp(-score))
        total -= target * math.log(probability) + (1 - target) * math.log(1 - probability)
    return total / len(scores)


def class_mean(features: Sequence[Vector]) -> list[float]:
    """iCaRL's class mean: the mean of unit features, brought to length 1."""
    units = [unit(feature) for feature in features]
    return unit([math.fsum(feature[d] for feature in units) / len(units) for d in range(len(units[0]))])


def nearest_mean(feature: Vector, means: Sequence[Vector]) -> list[float]:
    return [-(math.dist(unit(feature), mean) ** 2) for mean in means]


def rectified(
    values: Vector, initial: Vector, current: Vector, confidence: Vector, bounds: Sequence[int]
) -> list[float]:
    """IL2M, Eq. 1."""
    old = bounds[-2]
    if max(range(len(values)), key=lambda c: values[c]) < old:
        return list(values)
    result = []
    for c, value in enumerate(values):
        if c < old:
            task = next(s for s in range(len(bounds) - 1) if bounds[s] <= c < bounds[s + 1])
            result.append(value * initial[c] / current[c] * confidence[-1] / confidence[task])
        else:
            result.append(value)
    return result


def rescaled(initial: Sequence[Vector], bounds: Sequence[int]) -> list[list[float]]:
    """ScaIL's weights: every class as it was first learnt, in the magnitudes of the last task's classes."""
    width = len(initial[0])

    def size(task: int, rank: int) -> float:
        block = initial[bounds[task] : bounds[task + 1]]
        return math.fsum(sorted(map(abs, row), reverse=True)[rank] for row in block) / len(block)

    last, result = len(bounds) - 2, []
    for task in range(last + 1):
        for row in initial[bounds[task] : bounds[task + 1]]:
            by_size = sorted(range(width), key=lambda d: -abs(row[d]))
            ranks = {d: rank for rank, d in enumerate(by_size)}
            result.append([row[d] * size(last, ranks[d]) / size(task, ranks[d]) for d in range(width)])
    return result


def weighted_by_class_shares(scores: Vector, label: int, teacher: Vector, temperature: float) -> float:
    """BiC and WA: (1 - lambda) CE + lambda GKD, lambda the share of old classes."""
    share = len(teacher) / len(scores)
    return (1 - share) * cross_entropy(scores, label) + share * gkd(scores, teacher, temperature)


def corrected(scores: Vector, old: int, alpha: float, beta: float) -> list[float]:
    """BiC, Eq. 4: the correction of the newest task's block."""
    return [alpha * score + beta if c >= old else score for c, score in enumerate(scores)]


def alignment(rows: Sequence[Vector], old: int, order: int) -> float:
    """WA's gamma."""
    norms = [math.fsum(abs(value) ** order for value in row) ** (1 / order) for row in rows]
    return (math.fsum(norms[:old]) / old) / (math.fsum(norms[old:]) / (len(rows) - old))


def unsure(scores: Vector) -> float:
    """UW's confidence loss of teacher C for an exemplar: KL(uniform || softmax)."""
    return divergence([1 / len(scores)] * len(scores), softmax(scores))


def class_weight(label: int, counts: Sequence[int], first: int, last: int) -> float:
    """UW's loss scaling: N / (C n_y) for a class of [first, last), where C classes have N images; else 1."""
    if not first <= label < last:
        return 1.0
    return sum(counts[first:last]) / ((last - first) * counts[label])


def expanded(scores: Vector, auxiliary: Vector, label: int, old: int, weight: float) -> tuple[float, float]:
    """DER's two terms: over all classes, and of the head on the newest branch, whose class 0 is any old class."""
    place = 0
    for new in range(old, len(scores)):
        if label == new:
            place = 1 + new - old
    return cross_entropy(scores, label), weight * cross_entropy(auxiliary, place)


def effective_weights(counts: Sequence[int], beta: float) -> list[float]:
    """FOSTER's weights of classes: one over 1 + beta + beta^2 + ... of as many terms as images, 1 on average."""
    weights = []
    for count in counts:
        effective = math.fsum(beta**n for n in range(max(count, 1)))
        weights.append(1 / effective)
    return [weight * len(weights) / math.fsum(weights) for weight in weights]


def balanced_kd(student: Vector, teacher: Vector, weights: Vector, temperature: float) -> float:
    """FOSTER's compression: each probability of the teacher times its class's weight, brought to a sum of 1."""
    target = softmax([score / temperature for score in teacher])
    weighed = [p * weight for p, weight in zip(target, weights, strict=True)]
    total = math.fsum(weighed)
    return divergence([p / total for p in weighed], softmax([score / temperature for score in student]))
