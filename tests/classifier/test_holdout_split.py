"""The hold-out set: which images it takes."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ssil.classifier.holdout_split import hold_out
from ssil.classifier.image_file import ImageFile
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


def test_the_hold_out_set_grows_with_more_images_of_a_class() -> None:
    images = labelled_images(["ant"], 20)
    held = (images[0][0], images[1][0])
    training, (ants,) = hold_out(images, (held,), ["ant"], 100, Randomness(0), learnt=[8])
    assert ants[:2] == held
    assert len(ants) == 5  # a fifth of 28
    assert {image.digest for image, _ in training}.isdisjoint(image.digest for image in ants)
    assert len(training) == 15
    few, (ants,) = hold_out(images[:3], (held,), ["ant"], 100, Randomness(0), learnt=[98])
    assert (len(few), len(ants)) == (1, 2)  # no more than half of the one that is new


SHOTS = 4
"""Photographs of each thing, in the vectors below."""


def sessions(images: Sequence[ImageFile]) -> Tensor:
    """Vectors in which the images `n` to `n + 3` of a class are alike, for every fourth n."""
    names = [image.name.removesuffix(".png").split("/") for image in images]
    rows = []
    for name, copy in names:
        thing = torch.Generator().manual_seed(1000 * ord(name[0]) + int(copy) // SHOTS)
        shot = torch.Generator().manual_seed(int(copy))
        rows.append(torch.randn(64, generator=thing) + 0.1 * torch.randn(64, generator=shot))
    return torch.nn.functional.normalize(torch.stack(rows))


def test_images_that_are_alike_stay_on_one_side() -> None:
    images = labelled_images(["ant", "bee"], 40)
    for seed in range(3):
        training, holdout = hold_out(images, (), ["ant", "bee"], 100, Randomness(seed), sessions)
        assert [len(group) for group in holdout] == [8, 8]
        things = [{(name, int(image.name.split("/")[1][:-4]) // SHOTS) for image, name in training}]
        held = {(image.name.split("/")[0], int(image.name.split("/")[1][:-4]) // SHOTS) for g in holdout for image in g}
        assert len(held) == 4
        assert things[0].isdisjoint(held)


def test_a_class_whose_images_are_all_alike_is_split_all_the_same() -> None:
    images = labelled_images(["ant", "bee"], 10)

    def same(some: Sequence[ImageFile]) -> Tensor:
        return torch.nn.functional.one_hot(torch.tensor([int(image.name[0] == "a") for image in some])).float()

    _, holdout = hold_out(images, (), ["ant", "bee"], 100, Randomness(0), same)
    assert [len(group) for group in holdout] == [2, 2]


def test_images_like_one_of_the_hold_out_set_join_it() -> None:
    images = labelled_images(["ant", "bee"], 40)
    held = (images[0][0],), (images[40][0],)
    arrived = [pair for pair in images if pair[0].name in {"ant/1.png", "ant/2.png", "ant/4.png", "ant/8.png"}]
    training, (ants, bees) = hold_out(arrived, held, ["ant", "bee"], 100, Randomness(0), sessions, [10, 10])
    assert {image.name for image in ants} == {"ant/0.png", "ant/1.png", "ant/2.png"}
    assert {image.name for image, _ in training} == {"ant/4.png", "ant/8.png"}
    assert bees == held[1]
