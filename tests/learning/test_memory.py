from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import oracles
from ssil.core.classes import ClassTable
from ssil.core.randomness import Randomness
from ssil.learning.memory import (
    FixedBudget,
    GrowingBudget,
    Memory,
    MemoryBudget,
    NoBudget,
    Renew,
    Select,
    UnlimitedBudget,
    by_class,
    herding,
    keeping,
    most_recent,
    random_selection,
    reservoir,
    update,
)

some = settings(max_examples=60, deadline=None)
streams = st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=6), min_size=1, max_size=6)
"""The images of each class, task by task."""

select = random_selection(Randomness(0))


def names(count: int) -> list[str]:
    return [f"class {c}" for c in range(count)]


def fold(stream: list[list[int]], budget: MemoryBudget, select: Select = select) -> list[tuple[ClassTable, Memory]]:
    """The memory after each task; the images are numbered as they arrive."""
    classes, memory, history, images = ClassTable(), Memory(), [], 0
    for sizes in stream:
        arrived = {}
        for label, size in enumerate(sizes, start=classes.seen):
            arrived[label] = torch.arange(images, images + size)
            images += size
        classes = classes.extend(names(len(sizes)))
        memory = update(memory, arrived, classes, budget, select)
        history.append((classes, memory))
    return history


def labels_of(stream: list[list[int]]) -> Tensor:
    return torch.repeat_interleave(torch.tensor([size for sizes in stream for size in sizes]))


# ---- the specification's property checks, by number


@pytest.mark.parametrize(
    ("total", "tasks"), [(10_000, [100] * 10), (5_000, [500] + [50] * 10), (20_000, [50] * 20), (100, [7, 1, 1, 30])]
)
def test_17_fixed_memory_is_full_and_even(total: int, tasks: list[int]) -> None:
    for classes, memory in fold([[300] * size for size in tasks], FixedBudget(total)):
        assert len(memory) == min(total, 300 * classes.seen)
        assert max(memory.counts) - min(memory.counts) <= 1
        assert min(memory.counts) == min(300, total // classes.seen)


def test_17_sizes_of_the_specification() -> None:
    _, after_three = fold([[600] * 100] * 3, FixedBudget(10_000))[-1]
    assert (set(after_three.counts), len(after_three)) == ({33, 34}, 10_000)
    _, large_base = fold([[600] * 500, [600] * 50], FixedBudget(5_000))[-1]
    assert (set(large_base.counts), len(large_base)) == ({9, 10}, 5_000)


@some
@given(streams, st.integers(0, 60))
def test_18_fixed_memories_are_nested(stream: list[list[int]], total: int) -> None:
    history = [memory for _, memory in fold(stream, FixedBudget(total))]
    for before, after in pairwise(history):
        for earlier, later in zip(before.exemplars, after.exemplars, strict=False):
            assert torch.equal(later, earlier[: len(later)])


@some
@given(streams, st.integers(0, 12))
def test_18_growing_memory_holds_the_same_for_each_class(stream: list[list[int]], per_class: int) -> None:
    held = [min(per_class, size) for sizes in stream for size in sizes]
    history = fold(stream, GrowingBudget(per_class))
    for classes, memory in history:
        assert list(memory.counts) == held[: classes.seen]
        assert torch.equal(memory.indices, history[-1][1].indices[: len(memory)])


@some
@given(streams, st.sampled_from([FixedBudget(20), GrowingBudget(3), UnlimitedBudget(), NoBudget()]))
def test_19_memory_knows_only_the_classes_that_have_arrived(stream: list[list[int]], budget: MemoryBudget) -> None:
    labels = labels_of(stream)
    for classes, memory in fold(stream, budget):
        assert len(memory.counts) == classes.seen
        assert torch.equal(labels[memory.indices], memory.labels)
        assert len(set(memory.indices.tolist())) == len(memory)


# ---- room


@some
@given(streams, st.integers(0, 60))
def test_the_budget_is_never_exceeded_nor_wasted(stream: list[list[int]], total: int) -> None:
    held = 0
    for sizes, (_, memory) in zip(stream, fold(stream, FixedBudget(total)), strict=True):
        assert len(memory) == min(total, held + sum(sizes))
        held = len(memory)


@some
@given(st.lists(st.integers(0, 30), max_size=12), st.integers(0, 80))
def test_fixed_quotas_share_room_as_evenly_as_can_be(available: list[int], total: int) -> None:
    quotas = FixedBudget(total).quotas(available)
    assert sum(quotas) == min(total, sum(available))
    assert all(0 <= quota <= has for quota, has in zip(quotas, available, strict=True))
    hungry = [quota for quota, has in zip(quotas, available, strict=True) if quota < has]
    assert all(quota <= min(hungry) + 1 for quota in quotas if hungry)
    assert hungry == sorted(hungry, reverse=True)


def test_small_classes_leave_their_room_to_the_others() -> None:
    assert FixedBudget(20).quotas([1, 100, 2, 100]) == [1, 9, 2, 8]
    assert FixedBudget(3).quotas([9] * 5) == [1, 1, 1, 0, 0]
    assert FixedBudget(50).quotas([3, 4]) == [3, 4]
    assert FixedBudget(5).quotas([]) == []


def test_all_or_nothing() -> None:
    (_, everything), (_, nothing) = fold([[3, 1]], UnlimitedBudget())[0], fold([[3, 1]], NoBudget())[0]
    assert sorted(everything.indices.tolist()) == [0, 1, 2, 3]
    assert (everything.counts, nothing.counts, len(nothing), nothing.indices.tolist()) == ((3, 1), (0, 0), 0, [])


def test_empty_memory() -> None:
    memory = Memory()
    assert (len(memory), memory.counts, memory.indices.tolist(), memory.labels.tolist()) == (0, (), [], [])
    assert memory.indices.dtype == memory.labels.dtype == torch.long


# ---- more images of known classes


def test_more_images_fill_the_room_behind_those_held() -> None:
    (classes, memory), budget = fold([[2, 9]], FixedBudget(8))[0], FixedBudget(12)
    assert memory.counts == (2, 6)
    more = update(memory, {0: torch.arange(20, 30)}, classes, budget, select)
    assert more.counts == (6, 6)
    assert torch.equal(more.exemplars[0][:2], memory.exemplars[0])
    assert (more.exemplars[0][2:] >= 20).all()
    assert torch.equal(more.exemplars[1], memory.exemplars[1])


def test_a_full_class_keeps_what_it_holds_when_more_arrive() -> None:
    classes, memory = fold([[9, 9]], GrowingBudget(4))[0]
    again = update(memory, {1: torch.arange(20, 30)}, classes, GrowingBudget(4), select)
    assert torch.equal(again.indices, memory.indices)


def test_more_images_and_new_classes_together() -> None:
    classes, memory = fold([[9, 9]], FixedBudget(6))[0]
    arrived = {1: torch.arange(20, 30), 2: torch.arange(30, 40)}
    after = update(memory, arrived, classes.extend(["c"]), FixedBudget(6), select)
    assert after.counts == (2, 2, 2)
    assert torch.equal(after.exemplars[1], memory.exemplars[1][:2])
    assert (after.exemplars[2] >= 30).all()


# ---- selection


def test_random_selection_depends_on_seed_and_class_alone() -> None:
    candidates = torch.arange(100, 140)
    ten, twenty = select(3, candidates, 10), random_selection(Randomness(0))(3, candidates, 20)
    assert torch.equal(ten, twenty[:10])
    assert not torch.equal(ten, select(4, candidates, 10))
    assert not torch.equal(ten, random_selection(Randomness(1))(3, candidates, 10))
    assert torch.equal(select(3, candidates, 99).sort().values, candidates)


@some
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 4))
def test_herding_is_its_definition(seed: int, images: int, size: int) -> None:
    features = torch.randn(images, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    unit = oracles.rows(features / features.norm(dim=1, keepdim=True))
    found = (herding(lambda indices: features[indices - 50])(0, torch.arange(50, 50 + images), images) - 50).tolist()
    assert sorted(found) == list(range(images))
    for k in range(images):
        best = min(oracles.herding_gap(unit, [*found[:k], other]) for other in found[k:])
        assert oracles.herding_gap(unit, found[: k + 1]) <= best + 1e-9


def test_herding_is_a_priority_list_whatever_the_norm() -> None:
    features = torch.randn(30, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    scaled = features * torch.linspace(0.1, 9, 30).unsqueeze(1)
    few = herding(lambda indices: features[indices])(0, torch.arange(30), 4)
    many = herding(lambda indices: scaled[indices])(0, torch.arange(30), 12)
    assert torch.equal(few, many[:4])


def test_herding_begins_with_the_image_nearest_to_the_mean() -> None:
    features = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert herding(lambda indices: features[indices])(0, torch.arange(3), 1).tolist() == [2]


def test_herded_memory_shrinks_like_any_other() -> None:
    features = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
    chosen = herding(lambda indices: features[indices])
    (_, first), (_, last) = fold([[20], [20, 20]], FixedBudget(15), chosen)
    assert (first.counts, last.counts) == ((15,), (5, 5, 5))
    assert torch.equal(last.exemplars[0], first.exemplars[0][:5])


def test_by_class_keeps_the_order_within_a_class() -> None:
    labels = torch.tensor([1, 0, 1, 5, 0])
    groups = by_class(torch.tensor([4, 2, 3, 0]), labels)
    assert {label: group.tolist() for label, group in groups.items()} == {0: [4], 1: [2, 0], 5: [3]}
    assert by_class(torch.tensor([], dtype=torch.long), labels) == {}


def by_number(indices: Tensor) -> Tensor:
    """A random number for each image, which depends on the image alone."""
    drawn = [torch.rand((), generator=Randomness(0).at("priority", index)) for index in indices.tolist()]
    return torch.stack([torch.zeros(()), *drawn])[1:]


RENEWALS = {"keep": keeping, "recent": most_recent, "reservoir": lambda _: reservoir(by_number)}
arrivals = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=8)
"""The images of each of two classes, update by update."""


def followed(stream: Sequence[tuple[int, ...]], total: int, rule: str) -> list[tuple[dict[int, Tensor], Memory]]:
    """What arrives, and the memory after each update; images are numbered as they arrive."""
    classes, memory, history, images = ClassTable().extend(["a", "b"]), Memory(), [], 0
    for sizes in stream:
        ends = [images + sum(sizes[: number + 1]) for number in range(len(sizes))]
        arrived = {c: torch.arange(end - size, end) for c, (end, size) in enumerate(zip(ends, sizes, strict=True))}
        images = ends[-1]
        memory = update(memory, arrived, classes, FixedBudget(total), select, RENEWALS[rule])
        history.append((arrived, memory))
    return history


@pytest.mark.parametrize("rule", RENEWALS)
@some
@given(stream=arrivals, total=st.integers(1, 20))
def test_every_rule_keeps_its_quota_of_images_that_it_had_or_was_given(
    rule: str, stream: list[tuple[int, int]], total: int
) -> None:
    before = Memory((torch.empty(0, dtype=torch.long),) * 2)
    for arrived, after in followed(stream, total, rule):
        candidates = [[*kept.tolist(), *arrived[c].tolist()] for c, kept in enumerate(before.exemplars)]
        assert list(after.counts) == FixedBudget(total).quotas([*map(len, candidates)])
        for c, group in enumerate(after.exemplars):
            assert len({*group.tolist()}) == len(group)
            assert {*group.tolist()} <= {*candidates[c]}
        before = after


@some
@given(stream=arrivals, total=st.integers(1, 20))
def test_the_most_recent_images_are_kept(stream: list[tuple[int, int]], total: int) -> None:
    update_of = dict[int, int]()
    for number, (arrived, memory) in enumerate(followed(stream, total, "recent")):
        update_of |= {index: number for group in arrived.values() for index in group.tolist()}
        for group in memory.exemplars:
            ages = [update_of[index] for index in group.tolist()]
            assert ages == sorted(ages, reverse=True)


def test_keeping_never_takes_a_newer_image_and_the_other_rules_do() -> None:
    stream = [(100, 100)] * 21
    kept = {rule: followed(stream, 40, rule) for rule in RENEWALS}
    first = {rule: {*history[0][1].indices.tolist()} for rule, history in kept.items()}
    last = {rule: {*history[-1][1].indices.tolist()} for rule, history in kept.items()}
    assert first["keep"] == last["keep"]
    assert len(first["reservoir"] & last["reservoir"]) < 10
    assert min(last["recent"]) >= 20 * 200


def _always(rule: Renew, _: Select) -> Renew:
    return rule


def test_a_reservoir_is_uniform_over_all_arrivals_also_after_its_quota_shrank() -> None:
    """Over 400 seeds the kept images of five updates are distributed evenly: chi-square, 4 degrees of freedom."""
    found = torch.zeros(5)
    for seed in range(400):
        drawn = torch.rand(100, generator=Randomness(seed).at("priority"))
        memory, classes, rule = Memory(), ClassTable().extend(["a"]), reservoir(drawn.__getitem__)
        for number in range(5):
            new = {0: torch.arange(20 * number, 20 * number + 20)}
            budget = FixedBudget(20 if number < 2 else 10)
            memory = update(memory, new, classes, budget, select, partial(_always, rule))
        found += torch.bincount(memory.indices // 20, minlength=5)
    expected = found.sum() / 5
    assert found.sum() == 4000
    assert ((found - expected) ** 2 / expected).sum() < 13.28  # the 99 % quantile


def test_a_reservoir_does_not_depend_on_the_order_of_arrival() -> None:
    classes, rule = ClassTable().extend(["a"]), RENEWALS["reservoir"]
    parts = torch.randperm(60, generator=torch.Generator().manual_seed(1)).split(15)
    kept = []
    for order in (parts, parts[::-1]):
        memory = Memory()
        for part in order:
            memory = update(memory, {0: part}, classes, FixedBudget(12), select, rule)
        kept.append(memory.indices.tolist())
    assert kept[0] == kept[1]
