"""Hooks around a phase's steps, and stages between phases."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import Tensor

import tiny_runs
from phase_plans import PLAIN, Seen, learn_first, learn_second, memory, method, phase, state, two_tasks, weights
from ssil.benchmark.run_setup import RunSetup
from ssil.learning import stages
from ssil.learning.batches import Replay
from ssil.learning.method import Stage, StepPosition
from ssil.learning.model_state import initial_network
from ssil.learning.snapshot import TaskState
from ssil.nn.network import Network, Output


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> RunSetup:
    return two_tasks(tmp_path_factory.mktemp("hooks"))


Call = tuple[str, StepPosition, list[Tensor], list[Tensor]]


class Calls(list[Call]):
    """What hooks saw: which hook, when, the weights, their gradients."""

    def hook(self, name: str) -> Callable[[TaskState, StepPosition], None]:
        return partial(self._called, name)

    def _called(self, name: str, work: TaskState, moment: StepPosition) -> None:
        assert torch.is_grad_enabled() == (name == "gradients")
        gradients = [p.grad.clone() for p in work.network.parameters() if p.grad is not None]
        self.append((name, moment, weights(work.network), gradients))


def test_hooks_are_called_around_every_step(plan: RunSetup) -> None:
    """Gradients before it, project after it: between the two the weights move by the rate times the gradient."""
    calls = Calls()
    schedule = replace(PLAIN, epochs=2)
    gradients, project = calls.hook("gradients"), calls.hook("project")
    learn_first(plan, method(phase("main", schedule, gradients=gradients, project=project)))
    moments = [StepPosition(epoch, step, 4) for epoch in (0, 1) for step in (0, 1)]
    assert [call[:2] for call in calls] == [(name, moment) for moment in moments for name in ("gradients", "project")]
    for (_, _, before, slopes), (_, _, after, _) in zip(calls[::2], calls[1::2], strict=True):
        for old, gradient, new in zip(before, slopes, after, strict=True):
            torch.testing.assert_close(new, old - 0.1 * gradient)


def test_a_moment_counts_the_exemplars_of_a_step(plan: RunSetup) -> None:
    calls = Calls()
    _, before = learn_first(plan, method(phase("main")))
    replayed = replace(phase("main", gradients=calls.hook("gradients")), batches=Replay(4, 2))
    learn_second(plan, method(replayed), before)
    assert {moment.images for _, moment, _, _ in calls} == {6}


def test_a_hook_may_change_gradients(plan: RunSetup) -> None:
    """Without any, no weight moves: a phase does not inherit the momentum of the one before."""

    def nothing(work: TaskState, moment: StepPosition) -> None:
        for parameter in work.network.parameters():
            assert parameter.grad is not None
            parameter.grad.zero_()

    ends: dict[str, Network] = {}
    learn_first(plan, method(phase("main"), phase("halted", replace(PLAIN, momentum=0.9), gradients=nothing)), ends)
    assert all(map(torch.equal, weights(ends["main"]), weights(ends["halted"])))


def test_a_hook_may_change_weights(plan: RunSetup) -> None:
    def clear(work: TaskState, moment: StepPosition) -> None:
        work.network.head.weight.zero_()

    seen = Seen()
    _, snapshot = learn_first(plan, method(phase("main", loss=seen, project=clear)))
    assert not snapshot.network.head.weight.any()
    assert seen[0].output.logits.var(0).sum() > 1e-6
    assert seen[1].output.logits.var(0).sum() < 1e-12  # all that is left is the bias


def test_hooks_see_the_network_that_starts_again(plan: RunSetup) -> None:
    """A hook of the second phase changes the second phase's network."""
    _, before = learn_first(plan, method(phase("main")))
    recipe = method(phase("first"), phase("again", start="previous", project=stages.keep_old_rows))
    _, after = learn_second(plan, recipe, before)
    for name, old in before.network.head.named_parameters():
        assert torch.equal(after.network.head.get_parameter(name)[:2], old)


def test_a_stage_changes_what_follows(plan: RunSetup) -> None:
    """Between two phases; what follows is in training mode again."""
    works: list[TaskState] = []
    outputs: list[Output] = []

    def clear(work: TaskState) -> None:
        outputs.append(work.outputs(work.pool.new))
        works.append(work)
        for parameter in work.network.head.parameters():
            parameter.data.zero_()

    ends: dict[str, Network] = {}
    seen = Seen()
    progress, _ = learn_first(plan, method(phase("main"), Stage("clear", clear), phase("after", loss=seen)), ends)
    task = plan.stream.tasks[0]
    assert (works[0].classes, works[0].previous) == (task.classes, None)
    assert works[0].random == plan.context.random.within(1, "clear")
    assert torch.equal(works[0].pool.new, task.indices)
    expected = ends["main"].eval()(tiny_runs.preprocessed(plan.context, task.indices))
    torch.testing.assert_close(outputs[0].logits, expected.logits.detach())
    torch.testing.assert_close(outputs[0].features, expected.features.detach())
    assert not seen[0].output.logits.any()
    assert progress.losses.keys() == {"main", "after"}
    before, after = (state(ends[name].backbone) for name in ("main", "after"))
    assert not any(torch.equal(before[name], after[name]) for name in before)


def test_a_stage_knows_the_memory_and_the_model_before(plan: RunSetup) -> None:
    works: list[TaskState] = []
    _, before = learn_first(plan, method(phase("main")))
    learn_second(plan, method(Stage("look", works.append)), before)
    assert works[0].previous is before
    assert torch.equal(works[0].pool.old, memory(plan).indices)


def test_a_plan_of_stages_alone_is_done(plan: RunSetup) -> None:
    progress, snapshot = learn_first(plan, method(Stage("nothing", lambda work: None)))
    assert (progress.phase, progress.losses) == (1, {})
    expected = initial_network(method(), plan.stream.tasks[0].classes, plan.context)
    assert all(map(torch.equal, weights(snapshot.network), weights(expected)))
