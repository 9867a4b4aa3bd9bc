"""Two classes that look like one."""

import numpy as np
import torch

from ssil.classifier.advice.doubtful_classes import alike_classes
from ssil.classifier.advice.doubtful_images import judge
from ssil.classifier.advice.leave_one_out import LeftOut


def test_one_class_under_two_names_is_found() -> None:
    random = torch.Generator().manual_seed(0)
    things = torch.arange(80) % 4
    features = torch.eye(8)[things] * 3 + torch.rand(80, 8, generator=random)
    labels = torch.where((things == 2) & (torch.arange(80) % 8 < 4), 4, things)
    nearer = judge(LeftOut.of(features, labels)).nearer
    (pair,) = alike_classes(nearer, torch.bincount(labels).tolist())
    assert {pair.first, pair.second} == {2, 4}
    assert pair.share > 0.4
    assert pair.images == round(pair.share * 20)


def test_the_share_is_of_both_classes_together() -> None:
    nearer = np.array([[0.0, 0.5, 0.1], [0.2, 0.0, 0.9], [0.0, 0.9, 0.0]])
    assert [pair[:2] for pair in alike_classes(nearer, [10, 20, 4])] == []  # (5 + 4) / 30, and the last is too small
    found = alike_classes(nearer, [30, 10, 5])
    assert [pair[:2] for pair in found] == [(1, 2), (0, 1)]
    assert (found[1].share, found[1].images) == (17 / 40, 17)
