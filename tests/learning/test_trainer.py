"""What a phase can do: teachers, starts, selected images, trained parts, hooks; and stages between phases."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import tiny_runs
from phase_plans import (
    IDLE,
    PLAIN,
    SCHEDULE,
    Scaled,
    Seen,
    equal,
    learn_first,
    learn_second,
    memory,
    method,
    phase,
    state,
    two_tasks,
    weights,
)
from ssil.benchmark.run_setup import RunSetup
from ssil.core.classes import ClassTable
from ssil.core.errors import UserError
from ssil.core.randomness import Randomness
from ssil.learning import stages
from ssil.learning.batches import Pool, Replay
from ssil.learning.engine import learn, start
from ssil.learning.memory import Memory
from ssil.learning.method import Method, Phase, Stage, StepPosition
from ssil.learning.model_state import initial_network
from ssil.learning.snapshot import MAIN, Scorer, TaskState
from ssil.nn.heads import LinearHead
from ssil.nn.network import Network, Output


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> RunSetup:
    return two_tasks(tmp_path_factory.mktemp("phases"))


def first_step(plan: RunSetup, name: str, count: int = 10) -> tuple[Tensor, Tensor]:
    """The augmented images and the labels of a phase's first step in the first task, which has `count` images."""
    context, random = plan.context, plan.context.random.within(1, name)
    order = torch.randperm(count, generator=random.at("order", 0))
    indices = plan.stream.tasks[0].indices[order[:4]]
    draws = context.transform.draw(4, random.at("augment", 0, 0))
    images = context.transform.train(context.samples.images.fetch(indices), draws, torch.float64)
    return images, context.samples.labels[indices]


def first_four(pool: Pool, classes: ClassTable, random: Randomness) -> Pool:
    return Pool(pool.new[:4], pool.old[:0], pool.labels)


def test_a_kept_teacher_is_the_model_at_the_end_of_its_phase(plan: RunSetup) -> None:
    ends: dict[str, Network] = {}
    seen = Seen()
    learning = phase("second", loss=seen, teachers=("first model",))
    progress, snapshot = learn_first(plan, method(phase("first", keep_as="first model"), learning), ends)
    kept = progress.kept["first model"]
    assert equal(state(kept.network), state(ends["first"]))
    assert not equal(state(kept.network), state(snapshot.network))
    assert not kept.network.training
    assert not any(parameter.requires_grad for parameter in kept.network.parameters())
    assert kept.classes == plan.stream.tasks[0].classes
    expected = ends["first"].eval()(first_step(plan, "second")[0]).logits
    torch.testing.assert_close(seen[0].teachers["first model"].output.logits, expected)


def test_a_kept_teacher_keeps_its_scorer(plan: RunSetup) -> None:
    fit, seen = phase("fit", trained="scorer", keep_as="early"), Seen()
    recipe = method(phase("main"), fit, phase("more", trained="scorer"), phase("end", loss=seen, teachers=("early",)))
    progress, _ = learn_first(plan, replace(recipe, scorers={MAIN: Scaled}))
    then, now = (scorers[MAIN].get_parameter("scale") for scorers in (progress.kept["early"].scorers, progress.scorers))
    assert len({1.0, then.item(), now.item()}) == 3
    view = seen[0].teachers["early"]
    assert torch.equal(view.scores, then * view.output.logits)


def test_a_phase_sees_the_teachers_that_it_asks_for(plan: RunSetup) -> None:
    one, other = Seen(), Seen()
    recipe = method(
        phase("first", keep_as="a"),
        phase("second", loss=one, keep_as="b", teachers=("old",)),
        phase("third", loss=other, teachers=("b", "a")),
    )
    _, before = learn_first(plan, method(phase("main")))
    learn_second(plan, recipe, before)
    assert {*one[0].teachers} == {"old"}
    assert {*other[0].teachers} == {"a", "b"}
    assert not torch.equal(other[0].teachers["a"].output.logits, other[0].teachers["b"].output.logits)


def test_a_phase_may_start_again_from_the_previous_model(plan: RunSetup) -> None:
    """With a rate of 0 what is left is what the task began with: old rows, and new rows as they were drawn."""
    _, before = learn_first(plan, method(phase("main")))
    recipe = method(phase("first", keep_as="first"), phase("again", IDLE, start="previous"))
    begun = weights(start(recipe, before, plan.stream.tasks[1], plan.context).network)
    progress, after = learn_second(plan, recipe, before)
    assert all(map(torch.equal, weights(after.network), begun))
    assert not torch.equal(progress.kept["first"].network.head.weight, begun[-2])


def test_before_the_first_task_the_previous_model_is_a_fresh_one(plan: RunSetup) -> None:
    recipe = method(phase("first"), phase("again", IDLE, start="previous"))
    _, after = learn_first(plan, recipe)
    expected = initial_network(recipe, plan.stream.tasks[0].classes, plan.context)
    assert all(map(torch.equal, weights(after.network), weights(expected)))


def test_only_the_head_moves_where_it_is_trained_alone(plan: RunSetup) -> None:
    """The backbone's weights and buffers are the same bit for bit: no step, no weight decay, no batch statistics."""
    ends: dict[str, Network] = {}
    seen = Seen()
    learn_first(plan, method(phase("first"), phase("tuning", loss=seen, trained="head")), ends)
    assert equal(state(ends["first"].backbone), state(ends["tuning"].backbone))
    assert not torch.equal(ends["first"].head.weight, ends["tuning"].head.weight)
    assert not any(parameter.requires_grad for parameter in ends["tuning"].backbone.parameters())
    expected = ends["first"].eval()(first_step(plan, "tuning")[0]).features
    torch.testing.assert_close(seen[0].output.features, expected)


def test_a_step_of_the_head_by_hand(plan: RunSetup) -> None:
    ends: dict[str, Network] = {}
    tuning = phase("tuning", replace(PLAIN, weight_decay=0.01), trained="head", images=first_four)
    learn_first(plan, method(phase("first"), tuning), ends)
    network = ends["first"].eval()
    images, labels = first_step(plan, "tuning", count=4)
    loss = F.cross_entropy(network(images).logits, labels)
    for gradient, before, after in zip(
        torch.autograd.grad(loss, [*network.head.parameters()]),
        network.head.parameters(),
        ends["tuning"].head.parameters(),
        strict=True,
    ):
        torch.testing.assert_close(after.detach(), before.detach() - 0.1 * (gradient + 0.01 * before.detach()))


def test_after_the_head_the_whole_network_moves_again(plan: RunSetup) -> None:
    ends: dict[str, Network] = {}
    learn_first(plan, method(phase("tuning", trained="head"), phase("all")), ends)
    before, after = state(ends["tuning"].backbone), state(ends["all"].backbone)
    assert not any(torch.equal(before[name], after[name]) for name in before)


def test_a_phase_trains_on_the_images_that_it_chooses(plan: RunSetup) -> None:
    seen = Seen()
    asked: list[tuple[int, int]] = []

    def choose(pool: Pool, classes: ClassTable, random: Randomness) -> Pool:
        asked.append((random.seed, len(random.prefix)))
        return first_four(pool, classes, random)

    learn_first(plan, method(phase("main", loss=seen, images=choose)))
    labels = plan.context.samples.labels[plan.stream.tasks[0].indices[:4]]
    assert len(seen) == SCHEDULE.epochs
    assert all(torch.equal(step.labels.sort().values, labels.sort().values) for step in seen)
    assert seen[0].counts.tolist() == labels.bincount(minlength=2).tolist()
    assert asked == [(plan.config.seed, 0)]


def test_only_the_scorer_moves_where_it_is_trained_alone(plan: RunSetup) -> None:
    """It learns from outputs under the test transform, and a step is the textbook's."""
    ends: dict[str, Network] = {}
    seen = Seen()
    tuning = phase("fit", replace(PLAIN, weight_decay=0.5), loss=seen, trained="scorer")
    progress, snapshot = learn_first(plan, method(phase("main"), tuning, scorer=Scaled), ends)
    assert equal(state(ends["main"]), state(ends["fit"]))
    assert equal(state(ends["main"]), state(snapshot.network))
    scale = 1.0
    random, labels = plan.context.random.within(1, "fit"), plan.context.samples.labels
    order = plan.stream.tasks[0].indices[torch.randperm(10, generator=random.at("order", 0))]
    for step, indices in zip(seen, order[:8].split(4), strict=True):
        with torch.no_grad():
            logits = ends["main"].eval()(tiny_runs.preprocessed(plan.context, indices)).logits
        torch.testing.assert_close(step.output.logits, logits)
        assert torch.equal(step.labels, labels[indices])
        p, target = (scale * logits).softmax(1), F.one_hot(labels[indices], 2)
        scale -= 0.1 * (((p - target) * logits).sum(1).mean().item() + 0.5 * scale)
    scorer = progress.scorers[MAIN]
    assert isinstance(scorer, Scaled)
    assert scorer.scale.item() == pytest.approx(scale, rel=1e-9)
    assert not seen[0].teachers


def test_a_scorer_goes_on_in_the_next_task(plan: RunSetup) -> None:
    """As the student's it starts where it was, and as the teacher's it turns logits into scores."""
    fit, seen = phase("fit", trained="scorer"), Seen()
    _, before = learn_first(plan, method(phase("main"), fit, scorer=Scaled))
    scale = before.scorers[MAIN].get_parameter("scale").clone()
    assert scale != 1
    _, after = learn_second(plan, method(phase("main", loss=seen, teachers=("old",)), scorer=Scaled), before)
    assert torch.equal(after.scorers[MAIN].get_parameter("scale"), scale)
    assert after.scorers[MAIN] is not before.scorers[MAIN]
    assert not any(parameter.requires_grad for parameter in after.scorers[MAIN].parameters())
    view = seen[0].teachers["old"]
    assert torch.equal(view.scores, scale * view.output.logits)
    assert torch.equal(seen[0].scores, scale * seen[0].output.logits)


def test_what_a_plan_can_not_be() -> None:
    with pytest.raises(
        UserError, match=r"^method: phase 'fit' trains a scorer, which has no teachers; leave them out$"
    ):
        phase("fit", trained="scorer", teachers=("old",))
    with pytest.raises(UserError, match=r"^method: its scorers are \['other'\]; call the one that it is judged by"):
        Method(lambda classes: (), head=LinearHead, scorers={"other": Scorer})


def test_a_plan_is_refused_where_it_can_not_be_followed(plan: RunSetup) -> None:
    task = plan.stream.tasks[0]
    with pytest.raises(UserError, match=r"^method: phase 'main' asks for the teacher 'old'; task 1 has none$"):
        learn(method(phase("main", teachers=("old",))), None, Memory(), task, plan.context)
    with pytest.raises(UserError, match=r"^method: parts of its plan have one name: \['main', 'main'\]; give each"):
        learn(method(phase("main"), phase("main")), None, Memory(), task, plan.context)


class Forgetful(Scorer):
    """Keeps what it learns where nobody saves it."""

    temperature = 1.0

    def fit(self, work: TaskState) -> None:
        self.temperature = 2.0


def test_a_scorer_may_keep_nothing_that_is_not_saved(plan: RunSetup) -> None:
    recipe = method(phase("main"), scorer=Forgetful)
    with pytest.raises(
        UserError, match=r"^method: 'temperature' of scorer 'main' would not be saved; let it be a buffer"
    ):
        learn(recipe, None, Memory(), plan.stream.tasks[0], plan.context)


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


def test_a_position_counts_the_exemplars_of_a_step(plan: RunSetup) -> None:
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
    states: list[TaskState] = []
    outputs: list[Output] = []

    def clear(work: TaskState) -> None:
        outputs.append(work.outputs(work.pool.new))
        states.append(work)
        for parameter in work.network.head.parameters():
            parameter.data.zero_()

    ends: dict[str, Network] = {}
    seen = Seen()
    progress, _ = learn_first(plan, method(phase("main"), Stage("clear", clear), phase("after", loss=seen)), ends)
    task = plan.stream.tasks[0]
    assert (states[0].classes, states[0].previous) == (task.classes, None)
    assert states[0].random == plan.context.random.within(1, "clear")
    assert torch.equal(states[0].pool.new, task.indices)
    expected = ends["main"].eval()(tiny_runs.preprocessed(plan.context, task.indices))
    torch.testing.assert_close(outputs[0].logits, expected.logits.detach())
    torch.testing.assert_close(outputs[0].features, expected.features.detach())
    assert not seen[0].output.logits.any()
    assert progress.losses.keys() == {"main", "after"}
    before, after = (state(ends[name].backbone) for name in ("main", "after"))
    assert not any(torch.equal(before[name], after[name]) for name in before)


def test_a_stage_knows_the_memory_and_the_model_before(plan: RunSetup) -> None:
    states: list[TaskState] = []
    _, before = learn_first(plan, method(phase("main")))
    learn_second(plan, method(Stage("observe", states.append)), before)
    assert states[0].previous is before
    assert torch.equal(states[0].pool.old, memory(plan).indices)


def test_a_plan_of_stages_alone_is_done(plan: RunSetup) -> None:
    progress, snapshot = learn_first(plan, method(Stage("nothing", lambda work: None)))
    assert (progress.phase, progress.losses) == (1, {})
    expected = initial_network(method(), plan.stream.tasks[0].classes, plan.context)
    assert all(map(torch.equal, weights(snapshot.network), weights(expected)))


def freeze_the_stem(state: TaskState) -> None:
    state.network.backbone.get_submodule("stem").requires_grad_(False)


@pytest.mark.parametrize("before", [(), (phase("early", trained="head"),)])
def test_a_stage_that_freezes_is_refused(plan: RunSetup, before: tuple[Phase, ...]) -> None:
    reason = (
        r"method: stage 'freeze' sets requires_grad of backbone\.stem\.conv\.weight to False, .* Phase\(frozen=...\)"
    )
    with pytest.raises(UserError, match=reason):
        learn_first(plan, method(*before, Stage("freeze", freeze_the_stem), phase("main")))


def test_frozen_parts_of_a_phase_stay_as_they_are(plan: RunSetup) -> None:
    ends: dict[str, Network] = {}
    parts = phase("first"), phase("second", frozen=("backbone.stem", "backbone.stages.0")), phase("third")
    learn_first(plan, method(*parts), ends)
    first, second, third = (state(ends[name]) for name in ("first", "second", "third"))
    kept = {name for name, value in first.items() if torch.equal(value, second[name])}
    assert kept == {name for name in first if name.startswith(("backbone.stem.", "backbone.stages.0."))}
    assert not any(torch.equal(value, third[name]) for name, value in second.items())


def test_an_unknown_part_can_not_be_frozen(plan: RunSetup) -> None:
    with pytest.raises(UserError, match=r"phase 'main' names 'backbone\.layer1', which is no part; its network has"):
        learn_first(plan, method(phase("main", frozen=("backbone.layer1",))))


def test_parameters_that_a_backbone_freezes_are_never_trained(plan: RunSetup, tmp_path: Path) -> None:
    body = "from ssil.testing.small_stream import backbone\n\n\ndef mine(*given):\n    made = backbone(*given)\n"
    (tmp_path / "mine.py").write_text(f"{body}    made.stem.requires_grad_(False)\n    return made\n")
    given = replace(plan, context=replace(plan.context, backbone=f"{tmp_path / 'mine.py'}:mine"))
    ends: dict[str, Network] = {}
    learn_first(given, method(phase("first"), phase("second", trained="head"), phase("third")), ends)
    first, third = state(ends["first"]), state(ends["third"])
    kept = {name for name in dict(ends["first"].named_parameters()) if torch.equal(first[name], third[name])}
    assert kept == {"backbone.stem.conv.weight", "backbone.stem.norm.weight", "backbone.stem.norm.bias"}
