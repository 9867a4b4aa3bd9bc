"""The hold-out set: which images it takes, and what is measured on it."""

from ssil.classifier.holdout import ClassResult, HoldoutResult, accuracy_drops, hold_out
from ssil.core.randomness import Randomness
from tiny_classifiers import labelled_images


def sizes(per_class: int, budget: int = 100) -> list[int]:
    _, holdout = hold_out(labelled_images(["ant", "bee"], per_class), (), ["ant", "bee"], budget, Randomness(0))
    return [len(group) for group in holdout]


def test_a_fifth_of_a_class_is_held_out_at_most_ten_and_none_of_under_five() -> None:
    assert {count: sizes(count) for count in (4, 5, 24, 60)} == {4: [0, 0], 5: [1, 1], 24: [4, 4], 60: [10, 10]}
    assert sizes(60, budget=5) == [3, 2]


def test_images_are_either_trained_on_or_held_out() -> None:
    images = labelled_images(["ant", "bee"], 20)
    training, holdout = hold_out(images, (), ["ant", "bee"], 100, Randomness(0))
    trained, held = ({one.digest for one, _ in training}, {one.digest for group in holdout for one in group})
    assert trained.isdisjoint(held)
    assert trained | held == {one.digest for one, _ in images}


def test_the_order_of_the_images_does_not_matter() -> None:
    images = labelled_images(["ant", "bee"], 20)
    _, one = hold_out(images, (), ["ant", "bee"], 100, Randomness(0))
    _, other = hold_out(images[::-1], (), ["ant", "bee"], 100, Randomness(0))
    assert [[image.digest for image in group] for group in one] == [
        [image.digest for image in group] for group in other
    ]


def test_images_of_known_classes_are_not_held_out_again() -> None:
    images = labelled_images(["ant"], 20)
    held = (images[0][0], images[1][0])
    training, holdout = hold_out(images, (held,), ["ant"], 100, Randomness(0))
    assert holdout == [held]
    assert len(training) == 18


def result(**correct: int) -> HoldoutResult:
    return HoldoutResult({name: ClassResult(count, 4) for name, count in correct.items()}, 0.0, None)


def test_accuracy_is_over_images_not_classes() -> None:
    found = HoldoutResult({"ant": ClassResult(1, 2), "bee": ClassResult(1, 6)}, 0.0, None)
    assert (found.accuracy(["ant", "bee", "cat"]), found.accuracy(["cat"])) == (25.0, None)


def test_drops_are_those_of_classes_that_got_worse_the_largest_first() -> None:
    before, after = result(ant=4, bee=4, cat=2), result(ant=3, bee=1, cat=4, dog=0)
    assert [*accuracy_drops(before, after, ["ant", "bee", "cat", "dog"]).items()] == [("bee", 75.0), ("ant", 25.0)]
