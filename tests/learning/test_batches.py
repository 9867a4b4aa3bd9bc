from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ssil.core.randomness import Randomness
from ssil.learning.batches import Batch, Batches, ClassBalanced, Mixed, NewOnly, Pool, Replay

some = settings(max_examples=40, deadline=None)
sizes = st.integers(1, 12)
RULES = (Mixed(4), Mixed(4, drop_last=False), NewOnly(4), Replay(4, 3), ClassBalanced(4))


def pool(old: list[int], new: list[int]) -> Pool:
    """So many exemplars and so many new images of each class, scattered over the training set."""
    labels = torch.repeat_interleave(torch.tensor([*old, *new]))
    scattered = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    index_of = labels.new_empty(len(labels)).scatter_(0, scattered, torch.arange(len(labels)))
    return Pool(index_of[sum(old) :], index_of[: sum(old)], labels[scattered])


def one_epoch(rule: Batches, of: Pool, epoch: int = 0, seed: int = 0) -> list[Batch]:
    batch_at = rule.epoch(of, Randomness(seed), epoch)
    return [batch_at(step) for step in range(rule.steps(of))]


def batches(rule: Batches, of: Pool, epochs: int) -> list[Batch]:
    """Every batch of some epochs, one after the other."""
    return [batch for epoch in range(epochs) for batch in one_epoch(rule, of, epoch)]


def ids(indices: Tensor) -> set[int]:
    return set(indices.tolist())


@some
@given(st.lists(sizes, min_size=1, max_size=4), st.lists(sizes, min_size=1, max_size=4), sizes, sizes)
def test_replay_holds_exactly_n_new_and_m_old_images(old: list[int], new: list[int], n: int, m: int) -> None:
    """Property check 21, first half."""
    of, rule = pool(old, new), Replay(n, m)
    assert rule.steps(of) == max(1, len(of.new) // n)
    for epoch in range(2):
        shown = one_epoch(rule, of, epoch)
        for batch in shown:
            assert (len(batch.main), len(batch.replayed)) == (min(n, len(of.new)), m)
            assert ids(batch.main) <= ids(of.new)
            assert ids(batch.replayed) <= ids(of.old)
        seen = torch.cat([batch.main for batch in shown])
        assert len(ids(seen)) == len(seen)


@some
@given(st.integers(1, 9), st.integers(1, 20), st.integers(1, 12))
def test_exemplars_are_drawn_equally_often(exemplars: int, replay: int, epochs: int) -> None:
    """Property check 21, second half: at every moment the draw counts differ by at most one, and never start anew."""
    of = pool([exemplars], [7])
    drawn: Counter[int] = Counter(dict.fromkeys(of.old.tolist(), 0))
    for batch in batches(Replay(3, replay), of, epochs):
        drawn.update(batch.replayed.tolist())
        assert max(drawn.values()) - min(drawn.values()) <= 1


def test_replay_without_exemplars_is_a_pass_over_the_new_images() -> None:
    of = pool([], [5, 4])
    replay, mixed = (batches(rule, of, epochs=2) for rule in (Replay(2, 3), Mixed(2)))
    assert all(not len(batch.replayed) for batch in replay)
    assert all(torch.equal(a.main, b.main) for a, b in zip(replay, mixed, strict=True))


@some
@given(st.lists(sizes, min_size=1, max_size=4), st.lists(sizes, min_size=1, max_size=4), sizes)
def test_mixed_shows_each_image_at_most_once_an_epoch(old: list[int], new: list[int], n: int) -> None:
    of, rule = pool(old, new), Mixed(n)
    epoch = one_epoch(rule, of)
    shown = torch.cat([batch.main for batch in epoch])
    assert len(ids(shown)) == len(shown) == (rule.steps(of) * n if len(of.all) >= n else len(of.all))
    assert ids(shown) <= ids(of.all)
    assert all(len(batch.main) == min(n, len(of.all)) for batch in epoch)


@some
@given(st.lists(sizes, max_size=3), st.lists(st.integers(0, 12), min_size=1, max_size=3), sizes)
def test_mixed_can_keep_its_last_incomplete_batch(old: list[int], new: list[int], n: int) -> None:
    """An epoch then shows every image exactly once, and differs only at its end; of nothing there is no batch."""
    of = pool(old, new)
    epoch = one_epoch(Mixed(n, drop_last=False), of)
    shown = torch.cat([of.all[:0], *(batch.main for batch in epoch)])
    assert ids(shown) == ids(of.all)
    assert len(shown) == len(of.all)
    assert all(len(batch.main) == n for batch in epoch[:-1])
    if len(of.all):
        for kept, usual in zip(epoch, one_epoch(Mixed(n), of), strict=False):
            assert torch.equal(kept.main, usual.main)


def test_mixed_shows_everything_over_the_epochs() -> None:
    of = pool([3, 2], [5, 3])
    assert ids(torch.cat([batch.main for batch in batches(Mixed(4), of, epochs=9)])) == ids(of.all)


def test_new_only_ignores_exemplars() -> None:
    of = pool([6], [9])
    shown = one_epoch(NewOnly(4), of)
    assert [len(batch.main) for batch in shown] == [4, 4]
    assert all(ids(batch.main) <= ids(of.new) and not len(batch.replayed) for batch in shown)


@some
@given(st.lists(sizes, min_size=1, max_size=5), sizes, st.integers(1, 24))
def test_class_balanced_visits_each_class_equally_often(old: list[int], new: int, n: int) -> None:
    of, rule = pool(old, [new]), ClassBalanced(n)
    assert rule.steps(of) == max(1, len(of.all) // n)
    counts = torch.zeros(len(old) + 1, dtype=torch.long)
    drawn: Counter[int] = Counter(dict.fromkeys(of.all.tolist(), 0))
    for batch in batches(rule, of, epochs=3):
        assert len(batch.main) == min(n, len(of.all))
        counts += torch.bincount(of.labels[batch.main], minlength=len(counts))
        drawn.update(batch.main.tolist())
        assert counts.max() - counts.min() <= 1
    for label in range(len(counts)):
        of_class = [times for index, times in drawn.items() if of.labels[index] == label]
        assert max(of_class) - min(of_class) <= 1


@pytest.mark.parametrize("rule", RULES)
def test_a_batch_is_a_function_of_its_position(rule: Batches) -> None:
    of = pool([3, 4], [5, 6])
    forwards = [one_epoch(rule, of, epoch) for epoch in range(3)]
    for epoch in reversed(range(3)):
        batch_at = rule.epoch(of, Randomness(0), epoch)
        for step in reversed(range(rule.steps(of))):
            for now, before in zip(batch_at(step), forwards[epoch][step], strict=True):
                assert torch.equal(now, before)


@pytest.mark.parametrize("rule", RULES)
def test_epochs_and_seeds_differ(rule: Batches) -> None:
    of = pool([3, 4], [15, 16])
    first = one_epoch(rule, of)[0]
    for another in (one_epoch(rule, of, epoch=1)[0], one_epoch(rule, of, seed=1)[0]):
        assert not torch.equal(torch.cat(first), torch.cat(another))
