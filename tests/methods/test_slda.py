import numpy as np
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from torch.nn import functional as F

import closed_forms
from closed_forms import at_once, draw, images, scorer, scores
from ssil.learning.shrinkage import likeliest_shrinkage

TEST = draw(9, closed_forms.WIDTH, seed=7)


@pytest.mark.parametrize("shrinkage", [0.1, 0.7, 1.0])
@pytest.mark.parametrize("sizes", [(8, 8, 8), (3, 9, 5)])
def test_scores_are_scikit_learns(shrinkage: float, sizes: tuple[int, ...]) -> None:
    """With the classes' shares as priors its covariance weighs images equally; we take the priors out of the scores."""
    features, labels = images(sizes)
    priors = np.array(sizes) / sum(sizes)
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage, priors=priors)
    lda.fit(F.normalize(features).numpy(), labels.numpy())
    expected = lda.decision_function(F.normalize(TEST).numpy()) - np.log(priors)
    made = at_once(lambda: scorer("slda", shrinkage=shrinkage, power=1.0), features, labels)
    torch.testing.assert_close(scores(made, TEST), torch.from_numpy(expected), rtol=1e-6, atol=1e-8)


def test_the_default_takes_roots_and_the_likeliest_shrinkage() -> None:
    features, labels = images([20, 30, 25])
    made = at_once(lambda: scorer("slda"), features, labels)
    chosen = likeliest_shrinkage(made.sums_of(0), made.sums_of(1))
    fixed = at_once(lambda: scorer("slda", shrinkage=chosen, power=1.0), features.sqrt(), labels)
    torch.testing.assert_close(scores(made, TEST), scores(fixed, TEST.sqrt()))


def test_probabilities_of_wide_features_are_not_all_0_or_1() -> None:
    """The same images, with each feature 40 times: the evidence is not 40 times as much."""
    features, labels = images([9, 8, 9])
    made = at_once(lambda: scorer("slda", shrinkage=1.0), features, labels)
    wide = at_once(lambda: scorer("slda", shrinkage=1.0), features.repeat(1, 40), labels)
    narrow_scores, wide_scores = scores(made, TEST), scores(wide, TEST.repeat(1, 40))
    torch.testing.assert_close(wide_scores, narrow_scores * 40 * 64 / (40 * closed_forms.WIDTH))


def test_features_of_an_ill_conditioned_covariance_are_scored_in_single_precision_too() -> None:
    """A feature that hardly varies has a large weight; scores keep four digits."""
    features, labels = images([30, 30, 30])
    features[:, 0] *= 1e-3
    double = at_once(lambda: scorer("slda", shrinkage=1e-4), features, labels)
    expected = scores(double, TEST)
    found = scores(double.place(torch.device("cpu"), torch.float32), TEST.float())
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-4 * float(expected.abs().max()))
