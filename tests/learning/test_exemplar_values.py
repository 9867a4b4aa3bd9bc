"""Values that are stored with exemplars: computed once, carried along, dropped with them, and seen by losses."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from phase_plans import PLAIN, Seen, learn_first, learn_second, memory, method, phase, two_tasks
from ssil.benchmark.run_setup import RunSetup
from ssil.core.errors import UserError
from ssil.learning import memory as memories
from ssil.learning.engine import learn
from ssil.learning.exemplar_values import check_stored, with_values
from ssil.learning.memory import FixedBudget, Memory
from ssil.learning.method import Method, StoredValues
from ssil.learning.snapshot import TaskState
from ssil.learning.task import Task

Compute = Callable[[TaskState, Tensor], Mapping[str, Tensor]]


def logits(state: TaskState, indices: Tensor) -> dict[str, Tensor]:
    return {"logits": state.outputs(indices).logits}


def storing(compute: Compute = logits, seen: Seen | None = None) -> Method:
    plain = phase("main", PLAIN, *[seen] if seen is not None else [])
    return replace(method(plain), stored=StoredValues(compute, per_class=("logits",)))


@pytest.fixture
def plan(tmp_path: Path) -> RunSetup:
    return two_tasks(tmp_path)


def test_values_are_of_the_model_at_the_time_of_storing(plan: RunSetup) -> None:
    """A second task leaves those of the first as they are; its own have more columns; dropped exemplars lose theirs."""
    recipe, (_, second), context = storing(), plan.stream.tasks, plan.context
    _, first_model = learn_first(plan, recipe)
    first = with_values(recipe, first_model, memory(plan), context)
    assert torch.equal(first.stored["logits"], context.outputs(first_model.network, first.indices).logits)

    second_model = learn(recipe, first_model, first, second, context)
    arrived = memories.by_class(second.indices, context.samples.labels)
    select = memories.random_selection(context.random)
    chosen = memories.update(first, arrived, second.classes, FixedBudget(6), select)
    assert chosen.counts == (2, 2, 1, 1)
    kept = with_values(recipe, second_model, chosen, context).stored["logits"]
    assert torch.equal(kept[:4, :2], first.stored["logits"])
    assert kept[:4, 2:].isnan().all()
    assert torch.equal(kept[4:], context.outputs(second_model.network, chosen.indices[4:]).logits)

    fewer = memories.update(replace(chosen, stored={"logits": kept}), {}, second.classes, FixedBudget(4), select)
    assert torch.equal(fewer.stored["logits"][:2, :2], kept[[0, 2], :2])
    assert torch.equal(fewer.stored["logits"][2:], kept[4:])


def test_losses_see_indices_exemplars_and_stored_values(plan: RunSetup) -> None:
    seen, context = Seen(), plan.context
    recipe = storing(seen=seen)
    _, before = learn_first(plan, recipe)
    assert not any(step.stored or step.exemplars.any() for step in seen)
    seen.clear()
    exemplars = with_values(recipe, before, memory(plan), context)
    learn(recipe, before, exemplars, plan.stream.tasks[1], context)
    row_of = {index: row for row, index in enumerate(exemplars.indices.tolist())}
    assert any(step.exemplars.any() and not step.exemplars.all() for step in seen)
    for step in seen:
        assert torch.equal(context.samples.labels[step.indices], step.labels)
        for index, is_exemplar, values in zip(
            step.indices.tolist(), step.exemplars.tolist(), step.stored["logits"], strict=True
        ):
            assert is_exemplar == (index in row_of)
            if is_exemplar:
                assert torch.equal(values, exemplars.stored["logits"][row_of[index]])
            else:
                assert values.isnan().all()


def test_a_memory_of_another_method_gets_the_values_of_the_model_before(plan: RunSetup) -> None:
    seen = Seen()
    _, before = learn_first(plan, method(phase("main", PLAIN)))
    learn_second(plan, storing(seen=seen), before)
    step = next(step for step in seen if step.exemplars.any())
    indices = step.indices[step.exemplars]
    expected = plan.context.outputs(before.network, indices).logits
    torch.testing.assert_close(step.stored["logits"][step.exemplars], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda state, indices: {"codes": torch.zeros(len(indices), 2, dtype=torch.long)},
        lambda state, indices: {"logits": state.outputs(indices).logits[1:]},
    ],
    ids=["whole numbers", "a row too few"],
)
def test_values_that_are_no_rows_are_refused(wrong: Compute, plan: RunSetup) -> None:
    _, model = learn_first(plan, storing(wrong))
    with pytest.raises(UserError, match=r"^method: what it stores as .* has the shape .*; return a floating-point"):
        with_values(storing(wrong), model, memory(plan), plan.context)


def test_values_may_have_more_dimensions_and_grow(plan: RunSetup) -> None:
    def maps(state: TaskState, indices: Tensor) -> dict[str, Tensor]:
        return {"maps": torch.ones(len(indices), state.classes.seen, 1 + state.classes.task)}

    recipe = storing(maps)
    _, before = learn_first(plan, recipe)
    exemplars = with_values(recipe, before, memory(plan), plan.context)
    assert exemplars.stored["maps"].shape == (4, 2, 2)
    longer = torch.cat([exemplars.stored["maps"], torch.full((1, 2, 2), torch.nan)])
    more = Memory((*exemplars.exemplars, plan.stream.tasks[1].indices[:1]), {"maps": longer})
    after = learn(recipe, before, exemplars, plan.stream.tasks[1], plan.context)
    grown = with_values(recipe, after, more, plan.context).stored["maps"]
    assert grown.shape == (5, 4, 3)
    assert grown.isnan().sum(dim=(1, 2)).tolist() == [8, 8, 8, 8, 0]


def test_nothing_is_computed_without_a_model_or_exemplars(plan: RunSetup) -> None:
    def never(state: TaskState, indices: Tensor) -> Mapping[str, Tensor]:
        raise AssertionError

    _, model = learn_first(plan, storing(never))
    assert not with_values(storing(never), model, Memory(), plan.context).stored
    assert not with_values(storing(never), None, memory(plan), plan.context).stored
    assert not with_values(method(phase("main")), model, memory(plan), plan.context).stored


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (torch.zeros(3, 2), "not stored with 4 exemplars"),
        (torch.zeros(4, 2, dtype=torch.long), "not stored with 4 exemplars"),
        (torch.zeros(4, 3), "not stored for 2 classes"),
        (torch.zeros(4), "not stored for 2 classes"),
    ],
)
def test_stored_values_of_something_else_are_told(values: Tensor, reason: str, plan: RunSetup) -> None:
    with pytest.raises(ValueError, match=reason):
        check_stored(storing(), replace(memory(plan), stored={"logits": values}), classes=2)


def test_a_task_without_new_classes_replays_too(plan: RunSetup) -> None:
    recipe, (first, _) = storing(), plan.stream.tasks
    _, before = learn_first(plan, recipe)
    exemplars = with_values(recipe, before, memory(plan), plan.context)
    more = Task(first.classes.extend([]), first.indices[~torch.isin(first.indices, exemplars.indices)])
    assert learn(recipe, before, exemplars, more, plan.context).classes.seen == 2
