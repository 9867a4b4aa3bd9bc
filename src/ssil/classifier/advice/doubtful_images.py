"""Decide which images are doubtful: by their scores without themselves, by their pixels, by other images like them."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ssil.classifier.advice.image_measures import ImageMeasures, Values
from ssil.classifier.advice.leave_one_out import POWER, LeftOut, likeliest_temperature, probabilities
from ssil.learning.feature_statistics import tukey

WORSE_THAN_GUESSING = 8.0
"""A label is doubtful if its odds are so many times below those of a blind guess."""
MIN_CLASS = 3
"""Labels are judged in classes of so many images or more."""
FAR = 3.5
"""An image is far if its distance, as a logarithm, is so many robust deviations above the median."""
BLURRED, DARK = -1.0, 0.36
"""An image is blurred if its sharpness is so much below the median, dark if its brightness is below this part of it."""
MIN_MEDIAN = 5
"""In a class of so many images or more its own median counts beside that of all images."""
SAME_COPY, SAME_FEATURES = 0.95, 0.8
"""The least cosines of small copies, and of features, of nearly the same image."""
BLOCK = 1024

MAX_PAIRED = 3000
"""Of more classes, pairs are not compared: a matrix of all pairs would take hundreds of megabytes."""

Flags = NDArray[np.bool_]


class Judgement(NamedTuple):
    """What the classes without an image say of it, for each image."""

    odds: Values
    """(N,) how many times the odds of the image's label are below those of a blind guess."""
    likeliest: NDArray[np.int64]
    """(N,) the most likely class other than the image's own."""
    distance: Values
    """(N,) the distance to its own class."""
    nearer: Values
    """(K, K) the share of a class's images that are nearer to another class than to their own; empty for many."""
    accuracy: float
    """The share of images that are nearest to their own class."""

    def first(self, count: int) -> "Judgement":
        """Return what is said of the first images, and of all classes."""
        return Judgement(self.odds[:count], self.likeliest[:count], self.distance[:count], *self[3:])


def judge(statistics: LeftOut) -> Judgement:
    """Return what is said of each image by the classes without it."""
    classes, temperature = len(statistics.counts), likeliest_temperature(statistics)
    paired = classes if classes <= MAX_PAIRED else 0
    odds, likeliest, own, nearer, right_ones = [], [], [], torch.zeros(paired, paired), 0
    for rows, distances in statistics.blocks():
        labels, first = statistics.labels[rows], torch.arange(len(rows))
        chances = probabilities(distances, temperature)
        right = chances[first, labels].clamp(1e-30, 1 - 1e-15)
        odds.append((1 - right) / right / max(1, classes - 1))
        own.append(distances[first, labels])
        closer = distances < own[-1][:, None]
        if paired:
            nearer.index_add_(0, labels, closer.float())
        right_ones += int((~closer.any(1)).sum())
        chances[first, labels] = -1
        likeliest.append(chances.argmax(1))
    shares = (nearer.double() / statistics.counts[:paired, None]).numpy()
    accuracy = right_ones / len(statistics.labels)
    return Judgement(torch.cat(odds).numpy(), torch.cat(likeliest).numpy(), torch.cat(own).numpy(), shares, accuracy)


def doubtful_labels(judgement: Judgement, labels: Tensor) -> Flags:
    """Return which labels are probably wrong.

    The idea is that of confident learning (Northcutt, Jiang & Chuang 2021): out-of-sample probabilities against a
    threshold. Theirs is the mean confidence of each class; a label whose odds are several times below those of a blind
    guess was found with far fewer false alarms (docs/results/advice.md).
    """
    enough = torch.bincount(labels)[labels].numpy() >= MIN_CLASS
    return np.asarray((judgement.odds > WORSE_THAN_GUESSING) & enough)


def far_images(judgement: Judgement) -> Flags:
    """Return which images are far from their own class compared with all images."""
    with np.errstate(divide="ignore"):
        logs = np.log(judgement.distance)
    finite = np.isfinite(logs)
    if not finite.any():
        return np.zeros(len(logs), bool)
    middle = np.median(logs[finite])
    deviation = 1.4826 * np.median(np.abs(logs[finite] - middle))
    return np.asarray(finite & (logs - middle > FAR * max(deviation, 1e-9)))


def blurred_images(measures: ImageMeasures, labels: Tensor) -> Flags:
    """Return which images are much less sharp than the median of all, and than that of their class."""
    usual = np.fmin(_class_medians(measures.sharpness, labels), _median(measures.sharpness))
    with np.errstate(invalid="ignore"):
        return np.asarray(measures.sharpness - usual < BLURRED)


def dark_images(measures: ImageMeasures, labels: Tensor) -> Flags:
    """Return which images are much darker than the median of all, and than that of their class."""
    usual = np.fmin(_class_medians(measures.brightness, labels), _median(measures.brightness))
    with np.errstate(invalid="ignore"):
        return np.asarray(measures.brightness < DARK * usual)


def _median(values: Values) -> float:
    found = values[np.isfinite(values)]
    return float(np.median(found)) if len(found) else np.nan


def _class_medians(values: Values, labels: Tensor) -> Values:
    """Return for each image the median of its class; NaN in a class of fewer than `MIN_MEDIAN` images."""
    groups, medians = labels.numpy(), np.full(len(values), np.nan)
    for label in np.unique(groups):
        members = groups == label
        if members.sum() >= MIN_MEDIAN:
            medians[members] = _median(values[members])
    return medians


def nearly_same(measures: ImageMeasures, features: Tensor, labels: Tensor) -> Iterator[tuple[int, int]]:
    """Yield pairs of images of two classes that are nearly the same, see `alike_pairs`."""
    yield from (pair for pair in alike_pairs(measures, features) if labels[pair[0]] != labels[pair[1]])


def alike_pairs(measures: ImageMeasures, features: Tensor) -> Iterator[tuple[int, int]]:
    """Yield pairs of images that are nearly the same: their small copies, and their features, are.

    Each must be, by its small copy, the nearest of all images to the other one. So an image in a wrong class, all of
    whose images look nearly the same, is no pair.
    """
    copies, vectors = torch.from_numpy(measures.copies).float(), tukey(features.float(), POWER)
    nearest, cosines = (torch.cat(part) for part in zip(*_nearest(copies), strict=True))
    for one, other in enumerate(nearest.tolist()):
        mutual = one < other and nearest[other] == one
        if mutual and cosines[one] > SAME_COPY and vectors[one] @ vectors[other] > SAME_FEATURES:
            yield one, other


def _nearest(vectors: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the other vector of the highest cosine with each of some vectors, and that cosine, until all are done."""
    for rows in torch.arange(len(vectors)).split(BLOCK):
        alike = vectors[rows] @ vectors.T
        alike[torch.arange(len(rows)), rows] = -torch.inf
        cosines, nearest = alike.max(1)
        yield nearest, cosines
