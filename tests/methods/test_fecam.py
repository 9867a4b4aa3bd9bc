import pytest
import torch
from torch import Tensor

import closed_forms
from closed_forms import at_once, draw, images, scorer, scores
from ssil.methods.fecam import SCALE

TEST = draw(5, closed_forms.WIDTH, seed=7)


def transformed(rows: Tensor, power: float) -> list[Tensor]:
    """Each feature to the power, then the vector brought to length 1."""
    powers = [torch.tensor([float(value) ** power for value in row], dtype=torch.float64) for row in rows]
    return [row / row.norm() for row in powers]


def covariance(vectors: list[Tensor], centres: list[Tensor]) -> Tensor:
    total = torch.zeros(closed_forms.WIDTH, closed_forms.WIDTH, dtype=torch.float64)
    for vector, centre in zip(vectors, centres, strict=True):
        total += torch.outer(vector - centre, vector - centre)
    return total / len(vectors)


def correlation(matrix: Tensor, gamma: float) -> Tensor:
    """Shrunk and brought to correlations, entry by entry."""
    width = len(matrix)
    same = [float(matrix[i, i]) for i in range(width)]
    other = [float(matrix[i, j]) for i in range(width) for j in range(width) if i != j]
    shrunk = matrix.clone()
    for i in range(width):
        for j in range(width):
            shrunk[i, j] += gamma * (sum(same) / len(same) if i == j else sum(other) / len(other))
    normalised = shrunk.clone()
    for i in range(width):
        for j in range(width):
            normalised[i, j] = shrunk[i, j] / (shrunk[i, i] * shrunk[j, j]) ** 0.5
    return normalised


def distances(features: Tensor, labels: Tensor, shared: bool, gamma: float, power: float) -> Tensor:
    """The squared Mahalanobis distance of every test vector to every class, one by one."""
    vectors, found = transformed(features, power), torch.zeros(len(TEST), int(labels.max()) + 1, dtype=torch.float64)
    means = [
        torch.stack([v for v, label in zip(vectors, labels.tolist(), strict=True) if label == k]).mean(0)
        for k in range(found.shape[1])
    ]
    common = covariance(vectors, [means[label] for label in labels.tolist()])
    for k, mean in enumerate(means):
        members = [v for v, label in zip(vectors, labels.tolist(), strict=True) if label == k]
        matrix = correlation(common if shared else covariance(members, [mean] * len(members)), gamma)
        for i, vector in enumerate(transformed(TEST, power)):
            gap = vector - mean / mean.norm()
            found[i, k] = gap @ torch.linalg.inv(matrix) @ gap
    return found


@pytest.mark.parametrize(("gamma", "power"), [(1.0, 0.5), (0.3, 1.0), (10.0, 0.25)])
def test_scores_of_a_covariance_a_class_are_distances(gamma: float, power: float) -> None:
    features, labels = images([9, 4, 12])
    made = at_once(lambda: scorer("fecam", covariance="full", shrinkage=gamma, power=power), features, labels)
    expected = distances(features, labels, False, gamma, power)
    torch.testing.assert_close(scores(made, TEST), -SCALE / 2 * expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("gamma", "power"), [(1.0, 0.5), (0.3, 1.0), (10.0, 0.25)])
def test_scores_of_a_shared_covariance_differ_as_distances_do(gamma: float, power: float) -> None:
    """The part of the distance that all classes share is left out."""
    features, labels = images([9, 4, 12])
    made = at_once(lambda: scorer("fecam", shrinkage=gamma, power=power), features, labels)
    found, expected = scores(made, TEST), -SCALE / 2 * distances(features, labels, True, gamma, power)
    torch.testing.assert_close(found - found[:, :1], expected - expected[:, :1], rtol=1e-6, atol=1e-8)
