"""Features of images that were learnt before an update."""

import torch

from ssil.classifier.advice.learnt_before import LearntBefore


def test_an_image_whose_features_are_kept_counts_once() -> None:
    """Else it would stay in its own class when it is left out, and images of a new class would seem far."""
    before = LearntBefore(torch.eye(3), ["ant", "ant", "bee"])
    left = before.without(torch.tensor([[1.0, 0.01, 0.0], [0.0, 0.0, 1.0]]), ["ant", "ant"])
    assert left.names == ["ant", "bee"]  # the second has an examined twin in another class, which is a copy
    assert left.features.tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
