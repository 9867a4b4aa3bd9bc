import math

import pytest
import torch
from torch import Tensor

from ssil.learning.feature_statistics import Sums
from ssil.learning.shrinkage import SHRINKAGES, likeliest_shrinkage, shrunk


def sums(features: Tensor, labels: Tensor, classes: int) -> Sums:
    totals = torch.zeros(classes, features.shape[1], dtype=features.dtype).index_add_(0, labels, features)
    return Sums(labels.bincount(minlength=classes).double(), totals, features.T @ features, torch.tensor(len(features)))


def draw(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_covariance_is_that_of_the_images_about_their_class_means() -> None:
    features, labels = draw(9, 3, seed=0), torch.tensor([0, 0, 1, 1, 1, 2, 0, 1, 2])
    expected = torch.zeros(3, 3, dtype=torch.float64)
    for row, label in zip(features, labels.tolist(), strict=True):
        centred = row - features[labels == label].mean(0)
        expected += torch.outer(centred, centred) / 9
    torch.testing.assert_close(sums(features, labels, 3).covariance(), expected)


@pytest.mark.parametrize("images", [6, 40, 400])
def test_the_choice_is_the_one_with_the_least_loss_image_by_image(images: int) -> None:
    """The negative log-likelihood of each held-back image under the normal distribution of its class."""
    spread = torch.diag(torch.linspace(0.2, 3, 5, dtype=torch.float64))
    kept, held = draw(images, 5, seed=1) @ spread, draw(images, 5, seed=2) @ spread
    labels = torch.arange(images) % 2
    means = torch.stack([kept[labels == label].mean(0) for label in range(2)])
    covariance = sums(kept, labels, 2).covariance()

    def loss(shrinkage: float) -> float:
        matrix, total = shrunk(covariance, shrinkage), 0.0
        for row, label in zip(held, labels.tolist(), strict=True):
            centred = row - means[label]
            squared = centred @ torch.linalg.solve(matrix, centred)
            total += float(torch.logdet(matrix) + squared + 5 * math.log(2 * math.pi)) / 2
        return total

    assert likeliest_shrinkage(sums(kept, labels, 2), sums(held, labels, 2)) == min(SHRINKAGES, key=loss)


def test_many_images_of_unequal_variances_need_little_shrinkage_and_few_need_much() -> None:
    spread = torch.diag(torch.linspace(0.2, 3, 20, dtype=torch.float64))

    def chosen(images: int) -> float:
        parts = (sums(draw(images, 20, seed=seed) @ spread, torch.arange(images) % 2, 2) for seed in (1, 2))
        return likeliest_shrinkage(*parts)

    assert chosen(2000) < 0.05 < 0.1 <= chosen(12)


def test_without_spread_or_held_back_images_the_identity_is_taken() -> None:
    one, nothing = (
        sums(draw(2, 3, seed=0), torch.tensor([0, 1]), 2),
        sums(torch.empty(0, 3).double(), torch.empty(0).long(), 2),
    )
    assert likeliest_shrinkage(one, one) == 1.0
    assert likeliest_shrinkage(sums(draw(9, 3, seed=0), torch.arange(9) % 2, 2), nothing) == 1.0
    assert torch.equal(shrunk(torch.zeros(2, 2), 0.5), torch.eye(2))


def test_a_handful_of_images_with_many_features_has_a_shrinkage() -> None:
    """All but five of the covariance's 1,280 eigenvalues are zero; PyTorch's eigh failed on such with two threads."""
    features = draw(8, 1280, seed=3).abs().sqrt()
    features /= features.norm(dim=1, keepdim=True)
    kept, held = (sums(part, torch.arange(len(part)) % 2, 2) for part in (features[:6], features[6:]))
    assert likeliest_shrinkage(kept, held) in SHRINKAGES
