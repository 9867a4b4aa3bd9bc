"""Results on images that were not learnt."""

import pytest
import torch

from ssil.classifier.accuracy import ClassResult, grouped_interval
from ssil.classifier.cross_validation import ValidatedImages
from ssil.classifier.holdout import HoldoutResult, accuracy_drops, validated_result


def result(**correct: int) -> HoldoutResult:
    return HoldoutResult({name: ClassResult(count, 4) for name, count in correct.items()}, 0.0, None)


def test_accuracy_is_over_images_not_classes() -> None:
    found = HoldoutResult({"ant": ClassResult(1, 2), "bee": ClassResult(1, 6)}, 0.0, None)
    assert (found.accuracy(["ant", "bee", "cat"]), found.accuracy(["cat"])) == (25.0, None)


def test_drops_are_those_of_classes_that_got_worse_the_largest_first() -> None:
    before, after = result(ant=4, bee=4, cat=2), result(ant=3, bee=1, cat=4, dog=0)
    assert [*accuracy_drops(before, after, ["ant", "bee", "cat", "dog"]).items()] == [("bee", 75.0), ("ant", 25.0)]


def test_the_result_of_cross_validation_counts_groups_and_leaves_out_classes_of_one_image() -> None:
    labels, predicted = torch.tensor([0, 0, 0, 1, 1, 2]), torch.tensor([0, 1, 0, 1, -1, 0])
    images = ValidatedImages(
        torch.zeros(6, 2), labels, torch.tensor([0, 0, 2, 3, 4, 5]), predicted, torch.full((6,), 0.6)
    )
    found = validated_result(images, ["ant", "bee", "cat"])
    assert found
    assert found.classes == {"ant": ClassResult(2, 3), "bee": ClassResult(1, 2)}
    assert {name: sorted(groups) for name, groups in found.groups.items()} == {
        "ant": [(1, 1), (1, 2)],
        "bee": [(0, 1), (1, 1)],
    }
    assert found.interval(["ant", "bee"]) == grouped_interval(
        [ClassResult(*one) for one in [(1, 2), (1, 1), (1, 1), (0, 1)]]
    )
    assert found.calibration_error == pytest.approx(0.0, abs=1e-5)
    assert validated_result(images.take(torch.tensor([5])), ["ant", "bee", "cat"]) is None
    old = validated_result(images, ["ant"])
    assert old
    assert [*old.classes] == ["ant"]
