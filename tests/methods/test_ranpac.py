import pytest
import torch
from sklearn.linear_model import Ridge
from torch import Tensor
from torch.nn import functional as F

import closed_forms
from closed_forms import at_once, draw, images, scorer, scores
from ssil.core.randomness import Randomness
from ssil.learning.feature_statistics import is_held_back
from ssil.methods.ranpac import FALLBACK, PENALTIES, SCALE, RandomRidge, best_penalty

TEST = draw(9, closed_forms.WIDTH, seed=7)
WIDTH = 11


def projected(features: Tensor) -> Tensor:
    """ReLU(W' f) of features of length 1, number by number."""
    matrix = torch.randn(closed_forms.WIDTH, WIDTH, generator=Randomness(0).at("projection")).double()
    rows = [[float((row / row.norm()) @ matrix[:, column]) for column in range(WIDTH)] for row in features]
    return torch.tensor(rows, dtype=torch.float64).clamp(min=0)


def made(features: Tensor, labels: Tensor, **options: object) -> RandomRidge:
    found = at_once(lambda: scorer("ranpac", width=WIDTH, **options), features, labels)
    assert isinstance(found, RandomRidge)
    return found


@pytest.mark.parametrize("penalty", [0.01, 1.0, 100.0])
def test_scores_are_scikit_learns_ridge_regression(penalty: float) -> None:
    features, labels = images([5, 9, 4])
    ridge = Ridge(alpha=penalty, fit_intercept=False).fit(projected(features), F.one_hot(labels))
    expected = torch.from_numpy(ridge.predict(projected(TEST)))
    torch.testing.assert_close(
        scores(made(features, labels, penalty=penalty), TEST) / SCALE, expected, rtol=1e-6, atol=1e-8
    )


def test_recursive_least_squares_give_the_same_weights() -> None:
    """ACIL, Eqs. 10-12: the inverse R = (G + penalty I)^-1 is updated image by image, W by the error of each."""
    features, labels = images([5, 9, 4])
    vectors, targets = projected(features), F.one_hot(labels).double()
    inverse, weight = torch.eye(WIDTH, dtype=torch.float64) / 0.5, torch.zeros(WIDTH, 3, dtype=torch.float64)
    for row, target in zip(vectors, targets, strict=True):
        gain = inverse @ row / (1 + row @ inverse @ row)
        inverse = inverse - torch.outer(gain, row @ inverse)
        weight = weight + torch.outer(gain, target - row @ weight)
    torch.testing.assert_close(made(features, labels, penalty=0.5).weight, weight.T, rtol=1e-6, atol=1e-9)


def test_the_penalty_has_the_least_squared_error_on_the_images_that_were_held_back() -> None:
    features, labels = images([30, 25, 35], seed=3)
    found, vectors, targets = made(features, labels), projected(features), F.one_hot(labels).double()
    held = is_held_back(vectors)
    assert 5 < int(held.sum()) < 45

    def error(penalty: float) -> float:
        ridge = Ridge(alpha=penalty, fit_intercept=False, solver="cholesky").fit(vectors[~held], targets[~held])
        return float((torch.from_numpy(ridge.predict(vectors[held])) - targets[held]).square().sum())

    chosen = best_penalty(found.sums_of(0), found.sums_of(1))
    assert chosen == min((p for p in PENALTIES if p > 1e-7), key=error)
    fixed = made(features, labels, penalty=chosen)
    torch.testing.assert_close(scores(found, TEST), scores(fixed, TEST))


def test_too_few_images_to_hold_some_back() -> None:
    features, labels = images([1, 1, 1, 1])
    found = made(features, labels)
    lengths = projected(features).square().sum(1).mean()
    assert best_penalty(found.sums_of(0), found.sums_of(1)) == pytest.approx(FALLBACK * float(lengths))
