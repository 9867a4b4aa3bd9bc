from collections.abc import Callable
from functools import partial
from typing import Literal

import pytest
import torch
from torch import Tensor

from ssil.core.classes import ClassTable
from ssil.core.randomness import Randomness
from ssil.learning import stages
from ssil.learning.batches import Pool
from ssil.learning.method import StepPosition
from ssil.learning.snapshot import Snapshot, TaskState
from ssil.nn.heads import CosineHead, Head, LinearHead, ProxyHead
from ssil.nn.network import Network, Output
from ssil.nn.resnet import Backbone

RANDOM = Randomness(3)
MOMENT = StepPosition(0, 0, 4)


def work(make: Callable[[int], Head], before: bool = True) -> tuple[TaskState, dict[str, Tensor]]:
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
    task = TaskState(network, {}, seen, pool, previous if before else None, RANDOM, lambda *_: nothing)
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
