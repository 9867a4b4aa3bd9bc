from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ssil.core.errors import UserError
from ssil.core.samples import Samples
from ssil.data.augmentation import Transform
from ssil.data.dataset import Dataset, imbalanced, select, split, subset, validation_split
from ssil.data.resident_images import Resident


def samples(count: int, classes: int, seed: int) -> Samples:
    pixels = torch.randint(256, (count, 3, 3, 1), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))
    return Samples(Resident(pixels), torch.arange(count) % classes)


def dataset() -> Dataset:
    return Dataset("toy", samples(40, 4, 0), samples(20, 4, 1), ("a", "b", "c", "d"), Transform((0.5,), (0.5,)))


def pixels(part: Samples) -> Tensor:
    return part.images.fetch(torch.arange(len(part)))


def shuffled(part: Samples) -> Samples:
    return select(part, torch.randperm(len(part), generator=torch.Generator().manual_seed(3)))


def rows(part: Samples) -> set[tuple[int, ...]]:
    return {tuple(row) for row in pixels(part).flatten(1).tolist()}


def test_first_classes() -> None:
    part = subset(dataset(), classes=3)
    assert part.classes == ("a", "b", "c")
    assert part.train.labels.unique().tolist() == part.test.labels.unique().tolist() == [0, 1, 2]
    assert len(part.train) == 30


def test_few_per_class_do_not_depend_on_file_order() -> None:
    whole = dataset()
    other = replace(whole, train=shuffled(whole.train), test=shuffled(whole.test))
    assert other.fingerprint != whole.fingerprint
    few, same = (subset(d, train_per_class=3, test_per_class=2) for d in (whole, other))
    assert few.train.labels.bincount().tolist() == [3] * 4
    assert few.test.labels.bincount().tolist() == [2] * 4
    assert few.fingerprint == same.fingerprint
    assert rows(few.train) <= rows(whole.train)
    assert rows(few.train) <= rows(subset(whole, train_per_class=4).train)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": 5}, "classes: 5 must be between 1 and 4"),
        ({"classes": 0}, "classes: 0"),
        ({"train_per_class": 11}, "train_per_class: 11 is too many: class 'a' of 'toy' has 10; ask for 10 or fewer"),
        ({"test_per_class": 0}, "test_per_class: 0 must be at least 1"),
    ],
)
def test_what_is_not_there_is_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(UserError, match=message):
        subset(dataset(), **options)


def test_validation_replaces_the_test_images() -> None:
    whole = dataset()
    part = validation_split(whole, 0.3, seed=0)
    assert rows(part.train) | rows(part.test) == rows(whole.train)
    assert not rows(part.train) & rows(part.test)
    assert not rows(part.test) & rows(whole.test)
    assert part.test.labels.bincount().tolist() == [3] * 4
    assert part.fingerprint == validation_split(whole, 0.3, seed=0).fingerprint
    assert part.fingerprint != validation_split(whole, 0.3, seed=1).fingerprint


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, 2.0])
def test_validation_fraction_must_be_a_part(fraction: float) -> None:
    with pytest.raises(UserError, match="between 0 and 1"):
        validation_split(dataset(), fraction, seed=0)


@settings(max_examples=30, deadline=None)
@given(labels=st.lists(st.integers(0, 5), min_size=1, max_size=40), fraction=st.floats(0.01, 0.99))
def test_split_is_stratified(labels: list[int], fraction: float) -> None:
    stay, held = split(torch.tensor(labels), fraction, seed=0, purpose="test")
    assert sorted(stay.tolist() + held.tolist()) == list(range(len(labels)))
    for label in set(labels):
        total, out = labels.count(label), sum(labels[index] == label for index in held.tolist())
        assert out < total
        assert out >= min(1, total - 1)
        assert abs(out - fraction * total) <= 1


def test_fingerprint_sees_pixels_labels_and_names() -> None:
    base = dataset()
    brighter = Samples(Resident(pixels(base.train) ^ 1), base.train.labels)
    relabelled = Samples(base.train.images, base.train.labels.flip(0))
    others = [
        replace(base, train=brighter),
        replace(base, train=relabelled),
        replace(base, train=base.test, test=base.train),
        replace(base, classes=("a", "b", "c", "e")),
    ]
    prints = [base.fingerprint, *(other.fingerprint for other in others)]
    assert len(set(prints)) == len(prints)
    assert replace(base, name="other").fingerprint == base.fingerprint
    assert len(base.fingerprint) == 16
    assert int(base.fingerprint, 16) >= 0


def test_uneven_classes_have_from_all_to_the_least_part() -> None:
    whole = dataset()
    part = imbalanced(whole, 0.2, seed=0)
    counts = part.train.labels.bincount()
    assert sorted(counts.tolist()) == [2, 3, 6, 10]  # of 10 each: by 1, 0.2 ** (1 / 3), 0.2 ** (2 / 3), 0.2
    assert rows(part.train) <= rows(whole.train)
    assert rows(imbalanced(replace(whole, train=shuffled(whole.train)), 0.2, seed=0).train) == rows(part.train)
    assert imbalanced(whole, 0.2, seed=1).train.labels.bincount().tolist() != counts.tolist()
    assert torch.equal(pixels(part.test), pixels(whole.test))


def test_a_class_always_has_an_image() -> None:
    assert int(imbalanced(dataset(), 0.001, seed=0).train.labels.bincount().min()) == 1
