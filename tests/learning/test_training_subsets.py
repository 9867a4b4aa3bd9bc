from collections.abc import Callable, Sequence
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ssil.core.classes import ClassTable
from ssil.core.randomness import Randomness
from ssil.learning.batches import Pool
from ssil.learning.memory import FixedBudget, GrowingBudget, Memory, MemoryBudget, by_class, random_selection, update
from ssil.learning.method import ImageSelection
from ssil.learning.training_subsets import all_but, balanced, hold_out_in_total, hold_out_per_class

some = settings(max_examples=40, deadline=None)
sizes = st.lists(st.integers(1, 40), min_size=1, max_size=4)
RANDOM = Randomness(3)
SPLITS = (partial(hold_out_per_class, share=0.1), partial(hold_out_in_total, share=0.1))


def task(old: Sequence[int], new: Sequence[int]) -> tuple[Pool, ClassTable]:
    """A task with `old` exemplars and `new` images of each class, scattered over the training set."""
    labels = torch.repeat_interleave(torch.tensor([*old, *new]))
    index = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    label_of = torch.empty_like(labels).scatter_(0, index, labels)
    classes = ClassTable(("?",) * (len(old) + len(new)), (0, len(old), len(old) + len(new)))
    return Pool(index[sum(old) :], index[: sum(old)], label_of), classes


def counts(indices: Tensor, labels: Tensor, classes: int) -> list[int]:
    return torch.bincount(labels[indices], minlength=classes).tolist()


def ids(indices: Tensor) -> set[int]:
    return set(indices.tolist())


@pytest.mark.parametrize("split", SPLITS)
@some
@given(old=sizes, new=sizes)
def test_training_and_validation_share_nothing(split: ImageSelection, old: list[int], new: list[int]) -> None:
    """And lose nothing; each image stays on its side, a class keeps at least half, and the split is a function."""
    pool, classes = task(old, new)
    held, rest = split(pool, classes, RANDOM), all_but(split)(pool, classes, RANDOM)
    for whole, out, left in ((pool.new, held.new, rest.new), (pool.old, held.old, rest.old)):
        assert ids(out) | ids(left) == ids(whole)
        assert len(out) + len(left) == len(whole)
        assert torch.equal(left, whole[torch.isin(whole, left)])
    given_up = counts(held.all, pool.labels, classes.seen)
    assert all(2 * out <= size for out, size in zip(given_up, [*old, *new], strict=True))
    assert torch.equal(split(pool, classes, RANDOM).all, held.all)


@some
@given(sizes, sizes)
def test_per_class_counts_are_equal(old: list[int], new: list[int]) -> None:
    """A class of one image has none to give; without any from old or from new classes there is nothing to compare."""
    pool, classes = task(old, new)
    each = max(1, min(old + new) // 10)
    expected = [each if size > 1 else 0 for size in old + new]
    if max(old) == 1 or max(new) == 1:
        expected = [0] * len(expected)
    held = hold_out_per_class(pool, classes, RANDOM, 0.1)
    assert counts(held.all, pool.labels, classes.seen) == expected


def test_the_first_of_each_class_are_held_out_per_class() -> None:
    pool, classes = task(old=[30, 25], new=[100, 60])
    held = hold_out_per_class(pool, classes, RANDOM, 0.1)
    assert torch.equal(held.old, torch.cat([pool.old[:2], pool.old[30:32]]))
    select = random_selection(RANDOM)
    assert torch.equal(held.new, torch.cat([select(2, pool.new[:100], 2), select(3, pool.new[100:], 2)]))


def test_a_total_is_shared_by_the_classes_of_each_side() -> None:
    """27 % of 30 exemplars are 8: 2 of each old class and one more of the two largest; 8 // 3 of each new class."""
    pool, classes = task(old=[9, 11, 10], new=[20, 20, 5])
    held = hold_out_in_total(pool, classes, RANDOM, 0.27)
    assert counts(held.all, pool.labels, 6) == [2, 3, 3, 2, 2, 2]
    assert ids(held.old) == ids(torch.cat([pool.old[7:9], pool.old[17:20], pool.old[27:30]]))
    kept = random_selection(RANDOM)(3, pool.new[:20], 18)
    assert not ids(kept) & ids(held.new)


def test_of_equally_large_classes_the_first_to_arrive_give_more() -> None:
    pool, classes = task(old=[10, 10, 10], new=[9, 9])
    assert counts(hold_out_in_total(pool, classes, RANDOM, 0.134).old, pool.labels, 3) == [2, 1, 1]


@pytest.mark.parametrize(
    ("split", "old", "new"),
    [
        (hold_out_per_class, [1, 1], [50, 50]),
        (hold_out_per_class, [20, 20], [1]),
        (hold_out_in_total, [3, 2], [50, 50]),
        (hold_out_in_total, [5] * 10, [50] * 10),
    ],
    ids=["exemplars of one", "a new class of one", "a tenth of five", "fewer than new classes"],
)
def test_nothing_is_held_out_if_one_side_has_none(split: Callable[..., Pool], old: list[int], new: list[int]) -> None:
    """The last: 5 of 50 exemplars, 5 a class, are none for each of 10 new classes."""
    pool, classes = task(old, new)
    assert len(split(pool, classes, RANDOM, 0.1).all) == 0
    assert torch.equal(all_but(partial(split, share=0.1))(pool, classes, RANDOM).all, pool.all)


def test_more_images_of_an_old_class_are_trained_on() -> None:
    pool, classes = task(old=[20, 20], new=[30])
    late = Pool(pool.new, pool.old[:15], pool.labels)
    late = Pool(torch.cat([late.new, pool.old[15:20]]), torch.cat([late.old, pool.old[20:]]), pool.labels)
    for split in SPLITS:
        assert not ids(split(late, classes, RANDOM).all) & ids(pool.old[15:20])


def stream(images: Sequence[Sequence[int]], budget: MemoryBudget, first: bool) -> list[tuple[set[int], set[int]]]:
    """The images trained on and held out in each task; `first`: whether the first task holds any out."""
    labels = torch.repeat_interleave(torch.tensor([count for counts in images for count in counts]))
    split = partial(hold_out_per_class, share=0.1)
    memory, classes, parts = Memory(), ClassTable(), []
    for new in images:
        classes = classes.extend(["?"] * len(new))
        fresh = torch.arange(len(labels))[(labels >= classes.old) & (labels < classes.seen)]
        pool = Pool(fresh, memory.indices, labels)
        held = split(pool, classes, RANDOM) if classes.old or first else Pool(fresh[:0], fresh[:0], labels)
        parts.append((ids(pool.all) - ids(held.all), ids(held.all)))
        memory = update(memory, by_class(fresh, labels), classes, budget, random_selection(RANDOM))
    return parts


many = st.integers(2, 60)
streams = st.lists(st.lists(many, min_size=1, max_size=3), min_size=2, max_size=4)


@some
@given(streams, st.one_of(st.integers(24, 120).map(FixedBudget), st.integers(2, 30).map(GrowingBudget)))
def test_original_never_validates_on_what_was_trained_on(images: list[list[int]], budget: MemoryBudget) -> None:
    trained: set[int] = set()
    for learnt, held in stream(images, budget, first=True):
        assert held
        trained |= learnt
        assert not held & trained


@some
@given(streams, st.integers(24, 120).map(FixedBudget))
def test_per_class_validates_on_what_the_first_task_alone_has_trained_on(
    images: list[list[int]], budget: MemoryBudget
) -> None:
    parts = stream(images, budget, first=False)
    trained = set[int]()
    for learnt, held in parts[1:]:
        trained |= learnt
        assert not held & trained
    assert parts[1][1] & parts[0][0]


# The balanced set


def with_exemplars(exemplars: list[int], new: list[int], more: int = 0) -> tuple[Pool, ClassTable, Memory]:
    """A task with `exemplars` of each old class, `new` images of each new class and `more` new images of class 0.

    Exemplars have the higher indices, each class's most valuable the highest.
    """
    classes = ClassTable().extend(["old"] * len(exemplars)).extend(["new"] * len(new))
    fresh = [0] * more + [label for label, count in enumerate(new, len(exemplars)) for _ in range(count)]
    held = [label for label, count in enumerate(exemplars) for _ in range(count)]
    labels = torch.tensor(fresh + held)
    groups = by_class(torch.arange(len(fresh), len(labels)), labels)
    memory = Memory(tuple(groups[label].flip(0) for label in range(len(exemplars))))
    return Pool(torch.arange(len(fresh)), memory.indices, labels), classes, memory


few = st.lists(st.integers(1, 6), min_size=1, max_size=4)


@given(few, few, st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_a_balanced_set_has_equally_many_images_of_each_class(exemplars: list[int], new: list[int], more: int) -> None:
    """q of each, q the size of the smallest class; the exemplars are the memory's first."""
    pool, classes, memory = with_exemplars(exemplars, new, more)
    chosen = balanced(pool, classes, RANDOM)
    q = min(exemplars + new)
    assert pool.labels[chosen.all].bincount().tolist() == [q] * classes.seen
    assert len(chosen.all.unique()) == q * classes.seen
    assert set(chosen.new.tolist()) <= set(pool.new.tolist())
    assert torch.equal(chosen.old, torch.cat([kept[:q] for kept in memory.exemplars]))
    assert chosen.labels is pool.labels


def test_the_balanced_sets_new_images_are_those_that_a_random_memory_keeps() -> None:
    pool, classes, memory = with_exemplars(exemplars=[2, 3], new=[7, 5])
    chosen = balanced(pool, classes, RANDOM)
    kept = update(memory, by_class(pool.new, pool.labels), classes, GrowingBudget(2), random_selection(RANDOM))
    assert torch.equal(chosen.new, torch.cat(kept.exemplars[2:]))
    assert not torch.equal(chosen.new, balanced(pool, classes, Randomness(4)).new)


def test_one_exemplar_makes_a_balanced_set_of_one_image_a_class() -> None:
    pool, classes, _ = with_exemplars(exemplars=[1, 3], new=[5])
    assert pool.labels[balanced(pool, classes, RANDOM).all].tolist() == [2, 0, 1]


def test_new_images_of_old_classes_take_no_part_in_the_balanced_set() -> None:
    """Nor do they raise its size: an old class counts by its exemplars."""
    pool, classes, memory = with_exemplars(exemplars=[1, 2], new=[4], more=3)
    chosen = balanced(pool, classes, RANDOM)
    assert chosen.old.tolist() == [memory.exemplars[0][0], memory.exemplars[1][0]]
    assert pool.labels[chosen.new].tolist() == [2]
