from collections.abc import Callable
from functools import partial
from typing import Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ssil.core.classes import ClassTable
from ssil.core.randomness import Randomness
from ssil.learning import memory as memories
from ssil.learning import stages
from ssil.learning.batches import Pool
from ssil.learning.memory import GrowingBudget, Memory, by_class
from ssil.learning.method import Moment
from ssil.learning.snapshot import Snapshot, Work
from ssil.nn.heads import CosineHead, Head, LinearHead, ProxyHead
from ssil.nn.network import Network, Output
from ssil.nn.resnet import Backbone

RANDOM = Randomness(3)
MOMENT = Moment(0, 0, 4)


def stream(exemplars: list[int], new: list[int], more: int = 0) -> tuple[Pool, ClassTable, Memory]:
    """So many exemplars of each old class, so many images of each new one, and `more` new images of class 0.

    Exemplars have the higher indices, each class's most valuable the highest.
    """
    classes = ClassTable().extend(["old"] * len(exemplars)).extend(["new"] * len(new))
    fresh = [0] * more + [label for label, count in enumerate(new, len(exemplars)) for _ in range(count)]
    held = [label for label, count in enumerate(exemplars) for _ in range(count)]
    labels = torch.tensor(fresh + held)
    groups = by_class(torch.arange(len(fresh), len(labels)), labels)
    memory = Memory(tuple(groups[label].flip(0) for label in range(len(exemplars))))
    return Pool(torch.arange(len(fresh)), memory.indices, labels), classes, memory


counts = st.lists(st.integers(1, 6), min_size=1, max_size=4)


@given(counts, counts, st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_a_balanced_set_has_equally_many_images_of_each_class(exemplars: list[int], new: list[int], more: int) -> None:
    """q of each, q the size of the smallest class; the exemplars are the memory's first."""
    pool, classes, memory = stream(exemplars, new, more)
    chosen = stages.balanced(pool, classes, RANDOM)
    q = min(exemplars + new)
    assert pool.labels[chosen.all].bincount().tolist() == [q] * classes.seen
    assert len(chosen.all.unique()) == q * classes.seen
    assert set(chosen.new.tolist()) <= set(pool.new.tolist())
    assert torch.equal(chosen.old, torch.cat([kept[:q] for kept in memory.exemplars]))
    assert chosen.labels is pool.labels


def test_the_balanced_sets_new_images_are_those_that_a_random_memory_keeps() -> None:
    pool, classes, memory = stream(exemplars=[2, 3], new=[7, 5])
    chosen = stages.balanced(pool, classes, RANDOM)
    kept = memories.update(
        memory, by_class(pool.new, pool.labels), classes, GrowingBudget(2), memories.random_selection(RANDOM)
    )
    assert torch.equal(chosen.new, torch.cat(kept.exemplars[2:]))
    assert not torch.equal(chosen.new, stages.balanced(pool, classes, Randomness(4)).new)


def test_one_exemplar_makes_a_balanced_set_of_one_image_a_class() -> None:
    pool, classes, _ = stream(exemplars=[1, 3], new=[5])
    assert pool.labels[stages.balanced(pool, classes, RANDOM).all].tolist() == [2, 0, 1]


def test_new_images_of_old_classes_take_no_part_in_the_balanced_set() -> None:
    """Nor do they raise its size: an old class counts by its exemplars."""
    pool, classes, memory = stream(exemplars=[1, 2], new=[4], more=3)
    chosen = stages.balanced(pool, classes, RANDOM)
    assert chosen.old.tolist() == [memory.exemplars[0][0], memory.exemplars[1][0]]
    assert pool.labels[chosen.new].tolist() == [2]


def work(make: Callable[[int], Head], before: bool = True) -> tuple[Work, dict[str, Tensor]]:
    """A task of two new classes after three old ones, all weights moved since; and the old head's parameters."""
    head = make(4).grow(3, RANDOM.at("old"))
    classes = ClassTable().extend(["a", "b", "c"])
    previous = Snapshot(Network(Backbone(), head), classes, {})
    network = previous.network.grow(2, RANDOM.at("new"))
    for parameter in network.parameters():
        parameter.data += 1.0
    seen = classes.extend(["d", "e"])
    pool = Pool(torch.arange(2), torch.arange(0), torch.tensor([3, 4]))
    nothing = Output(torch.empty(0), torch.empty(0))
    task = Work(network, {}, seen, pool, previous if before else None, RANDOM, lambda *_: nothing)
    return task, {name: parameter.detach().clone() for name, parameter in head.named_parameters()}


@pytest.mark.parametrize("make", [LinearHead, CosineHead, ProxyHead])
def test_old_rows_are_put_back(make: Callable[[int], Head]) -> None:
    """Rows of new classes and a scale stay as they are, and the rows before the task are only read."""
    task, before = work(make)
    learnt = {name: parameter.detach().clone() for name, parameter in task.network.head.named_parameters()}
    with torch.no_grad():
        stages.keep_old_rows(task, MOMENT)
    assert task.previous is not None
    for name, parameter in task.network.head.named_parameters():
        if parameter.dim():
            assert torch.equal(parameter[:3], before[name])
            assert torch.equal(parameter[3:], learnt[name][3:])
        else:
            assert torch.equal(parameter, learnt[name])
        assert torch.equal(task.previous.network.head.get_parameter(name), before[name])
        assert parameter.requires_grad


def test_the_first_task_has_no_old_rows() -> None:
    task, _ = work(LinearHead, before=False)
    learnt = task.network.head.weight.detach().clone()
    with torch.no_grad():
        stages.keep_old_rows(task, MOMENT)
    assert torch.equal(task.network.head.weight, learnt)


@pytest.mark.parametrize("init", ["default", "zero"])
def test_a_reset_head_is_drawn_anew(init: Literal["default", "zero"]) -> None:
    """All of it, and never as zeros, even where rows of later tasks start at zero."""
    task, before = work(partial(LinearHead, init=init))
    stages.reset_head(task)
    again, _ = work(partial(LinearHead, init=init))
    stages.reset_head(again)
    for name, parameter in task.network.head.named_parameters():
        assert len(parameter) == 5
        assert parameter.requires_grad
        assert parameter.detach().abs().min() > 0
        assert not torch.isclose(parameter[:3], before[name]).any()
        assert torch.equal(parameter, again.network.head.get_parameter(name))
