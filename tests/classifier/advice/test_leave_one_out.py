"""Distances of an image to classes that were computed without it, against computing them anew for each image."""

import pytest
import torch
from torch import Tensor

from ssil.classifier.advice.leave_one_out import LeftOut, likeliest_temperature, probabilities
from ssil.learning.feature_statistics import tukey


def drawn(images: int = 40, width: int = 6, classes: int = 4) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(1)
    labels = torch.arange(images) % classes
    centres = 2 * torch.rand(classes, width, generator=random)
    return centres[labels] + 0.3 * torch.rand(images, width, generator=random), labels


def literal_distances(features: Tensor, labels: Tensor, left: int, shrinkage: float) -> list[float]:
    """Compute means and covariance from all images but one; only the amounts of shrinkage are those of all images."""
    vectors = tukey(features.double(), 0.5)
    count, width = vectors.shape
    kept = [row for row in range(count) if row != left]
    classes = range(int(labels.max()) + 1)
    means = [torch.stack([vectors[row] for row in kept if labels[row] == label]).mean(0) for label in classes]
    scatter = torch.zeros(width, width, dtype=torch.float64)
    for row in kept:
        away = vectors[row] - means[labels[row]]
        scatter += torch.outer(away, away)
    every = [vectors[labels == label].mean(0) for label in classes]
    variance = sum(float((vectors[row] - every[labels[row]]).square().sum()) for row in range(count)) / count / width
    covariance = (1 - shrinkage) * scatter / count + shrinkage * variance * torch.eye(width, dtype=torch.float64)
    inverse = torch.linalg.inv(covariance)
    return [float((vectors[left] - mean) @ inverse @ (vectors[left] - mean)) for mean in means]


@pytest.mark.parametrize("shrinkage", [0.05, 0.4, 1.0])
def test_each_image_is_judged_as_if_it_had_not_been_there(shrinkage: float) -> None:
    features, labels = drawn()
    statistics = LeftOut.of(features, labels, shrinkage)
    expected = torch.tensor([literal_distances(features, labels, row, shrinkage) for row in range(len(labels))])
    torch.testing.assert_close(statistics.distances(torch.arange(len(labels))).float(), expected)
    rows = torch.tensor([7, 3])
    torch.testing.assert_close(statistics.distances(rows).float(), expected[rows])


def test_the_only_image_of_a_class_is_far_from_it() -> None:
    features, labels = drawn()
    labels[0] = 4
    distances = LeftOut.of(features, labels).distances(torch.tensor([0, 1]))
    assert distances[0, 4] == torch.inf
    assert distances.isfinite().sum() == 9
    assert likeliest_temperature(LeftOut.of(features[:2], torch.tensor([0, 1]))) == 1.0


def test_equal_images_have_distances_too() -> None:
    distances = LeftOut.of(torch.ones(6, 3), torch.tensor([0, 0, 0, 1, 1, 1])).distances(torch.arange(6))
    assert distances.tolist() == [[0.0, 0.0]] * 6


def test_probabilities_follow_the_temperature() -> None:
    statistics = LeftOut.of(*drawn())
    distances = statistics.distances(torch.arange(40))
    cool, warm = (probabilities(distances, temperature) for temperature in (1.0, 100.0))
    assert (cool.amax(1) >= warm.amax(1)).all()
    torch.testing.assert_close(cool.sum(1), torch.ones(40, dtype=torch.float64))

    def loss(temperature: float) -> float:
        return -sum(float(probabilities(distances, temperature)[row, row % 4].log()) for row in range(40))

    best = likeliest_temperature(statistics)
    assert loss(best) <= min(loss(best * 1.1), loss(best / 1.1))
