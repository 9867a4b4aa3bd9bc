import torch
from sklearn.neighbors import NearestCentroid
from torch.nn import functional as F

import closed_forms
from closed_forms import at_once, draw, images, scorer, scores
from ssil.methods.ncm import SCALE

TEST = draw(40, closed_forms.WIDTH, seed=7)


def test_scores_are_cosines_to_the_mean_of_unit_length_features() -> None:
    features, labels = images([3, 1, 5])
    made = at_once(lambda: scorer("ncm"), features, labels)
    for label in range(3):
        members = features[labels == label]
        mean = torch.stack([row / row.norm() for row in members]).mean(0)
        cosines = torch.stack([row @ mean / row.norm() / mean.norm() for row in TEST])
        torch.testing.assert_close(scores(made, TEST)[:, label] / SCALE, cosines)


def test_predictions_are_scikit_learns_nearest_centroid_of_unit_length() -> None:
    features, labels = images([4, 6, 5])
    means = torch.stack([F.normalize(features[labels == label]).mean(0) for label in range(3)])
    either_side = torch.cat([F.normalize(means) - 0.1, F.normalize(means) + 0.1])
    centroid = NearestCentroid().fit(either_side.numpy(), [0, 1, 2, 0, 1, 2])
    found = scores(at_once(lambda: scorer("ncm"), features, labels), TEST).argmax(1)
    assert found.tolist() == centroid.predict(F.normalize(TEST).numpy()).tolist()
