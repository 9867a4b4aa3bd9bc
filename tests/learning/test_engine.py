from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import tiny_runs
from ssil.benchmark.run_setup import RunSetup, set_up
from ssil.core.classes import ClassTable
from ssil.core.errors import UserError
from ssil.learning.batches import Mixed
from ssil.learning.engine import learn, start
from ssil.learning.memory import Memory
from ssil.learning.method import Loss, Method, Phase, Term, mean
from ssil.learning.model_state import initial_network
from ssil.learning.schedule import Schedule
from ssil.learning.snapshot import Step
from ssil.learning.task import Progress, ProgressReport
from ssil.nn.heads import LinearHead
from ssil.nn.network import Network

SCHEDULE = Schedule(epochs=2, lr=(0.1, 0.05), milestones=(1,), momentum=0.9, weight_decay=0.01)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> RunSetup:
    """Two tasks of two classes with 5 images each, in double precision."""
    dataset = tiny_runs.patterns(tmp_path_factory.mktemp("engine") / "patterns.npz", [5] * 4)
    return set_up(tiny_runs.config(dataset, tasks=2, precision="64-true"))


def cross_entropy(step: Step) -> dict[str, Term]:
    return {"ce": mean(F.cross_entropy(step.output.logits, step.labels, reduction="none"))}


def phase(schedule: Schedule = SCHEDULE, loss: Loss = cross_entropy, name: str = "main", batch: int = 4) -> Phase:
    return Phase(name, loss, Mixed(batch), schedule)


def method(*phases: Phase) -> Method:
    return Method(lambda classes: phases, head=LinearHead)


def learn_first(
    plan: RunSetup, *phases: Phase, watch: Callable[[Progress, ProgressReport], None] | None = None
) -> Progress:
    """What is left after the first task."""
    task, recipe = plan.stream.tasks[0], method(*phases)
    progress = start(recipe, None, task, plan.context)
    learn(recipe, None, Memory(), task, plan.context, progress, watch or (lambda progress, pace: None))
    return progress


def weights(network: Network) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in network.parameters()]


def test_an_epoch_against_sgd_by_hand(plan: RunSetup) -> None:
    """Momentum, weight decay, the schedule, the batches and the recorded loss, against the textbook's update."""
    task, context = plan.stream.tasks[0], plan.context
    network = initial_network(method(), task.classes, context)
    random = context.random.within(1, "main")
    velocity = [torch.zeros_like(parameter) for parameter in network.parameters()]
    losses: list[list[float]] = [[], []]
    for epoch, lr in enumerate((0.1, 0.05)):
        order = task.indices[torch.randperm(10, generator=random.at("order", epoch))]
        for step in range(2):
            indices = order[4 * step : 4 * step + 4]
            draws = context.transform.draw(4, random.at("augment", epoch, step))
            images = context.transform.train(context.samples.images.fetch(indices), draws, torch.float64)
            loss = -network(images).logits.log_softmax(1)[range(4), context.samples.labels[indices]].mean()
            losses[epoch].append(loss.item())
            for v, p, gradient in zip(
                velocity,
                network.parameters(),
                torch.autograd.grad(loss, list(network.parameters())),
                strict=True,
            ):
                v.mul_(0.9).add_(gradient + 0.01 * p.detach())
                p.data.sub_(lr * v)
    learnt = learn_first(plan, phase())
    for mine, theirs in zip(weights(learnt.network), weights(network), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-12)
    assert learnt.losses["main"]["ce"] == pytest.approx([sum(each) / 2 for each in losses], rel=1e-9)
    assert learnt.images == 16


def test_the_observer_is_called_after_every_step_and_epoch(plan: RunSetup) -> None:
    paces: list[tuple[str, int, int]] = []
    learn_first(
        plan,
        phase(),
        phase(replace(SCHEDULE, epochs=1), name="second", batch=10),
        watch=lambda progress, pace: paces.append((pace.phase, pace.epoch, pace.step)),
    )
    first = [("main", 0, 1), ("main", 0, 2), ("main", 1, 0), ("main", 1, 1), ("main", 1, 2), ("main", 2, 0)]
    assert paces == [*first, ("second", 0, 1), ("second", 1, 0)]


def test_phases_have_their_own_losses_and_momentum(plan: RunSetup) -> None:
    """A second phase with rate 0 changes no weight, however much momentum the first one had."""
    once = learn_first(plan, phase())
    twice = learn_first(plan, phase(), phase(replace(SCHEDULE, lr=(0.0, 0.0)), name="idle"))
    assert all(map(torch.equal, weights(once.network), weights(twice.network)))
    assert twice.losses.keys() == twice.seconds.keys() == {"main", "idle"}
    assert twice.losses["main"] == once.losses["main"]


def test_the_rate_changes_at_the_milestone(plan: RunSetup) -> None:
    stopped = learn_first(plan, phase(replace(SCHEDULE, lr=(0.1, 0.0))))
    short = learn_first(plan, phase(replace(SCHEDULE, epochs=1)))
    assert all(map(torch.equal, weights(stopped.network), weights(short.network)))


def test_a_fresh_start_forgets_the_network(plan: RunSetup) -> None:
    """With a rate of 0 what is left is the first weights of a network of its own for the second task."""
    first, second = plan.stream.tasks
    idle = replace(phase(replace(SCHEDULE, lr=(0.0, 0.0))), start="fresh")
    snapshot = learn(method(phase()), None, Memory(), first, plan.context)
    again = learn(method(idle), snapshot, Memory(), second, plan.context)
    assert all(
        map(torch.equal, weights(again.network), weights(initial_network(method(), second.classes, plan.context)))
    )
    assert not torch.equal(again.network.head.weight[:2], snapshot.network.head.weight)


def test_a_task_starts_from_the_network_before_it(plan: RunSetup) -> None:
    first, second = plan.stream.tasks
    snapshot = learn(method(phase()), None, Memory(), first, plan.context)
    progress = start(method(), snapshot, second, plan.context)
    assert torch.equal(progress.network.head.weight[:2], snapshot.network.head.weight)
    assert progress.network.head.classes == 4
    assert all(map(torch.equal, progress.network.backbone.parameters(), snapshot.network.backbone.parameters()))
    assert all(parameter.requires_grad for parameter in progress.network.parameters())


def test_first_weights_depend_on_the_seed_and_the_task_alone(plan: RunSetup) -> None:
    classes = plan.stream.tasks[0].classes
    one, same = (weights(initial_network(method(), classes, plan.context)) for _ in range(2))
    assert all(map(torch.equal, one, same))
    other = weights(initial_network(method(), ClassTable().extend(["x"]).extend(["y"]), plan.context))
    assert not torch.equal(one[0], other[0])


def test_a_term_is_divided_by_its_divisor(plan: RunSetup) -> None:
    """A group without members counts as nothing, not as a division by zero."""

    def loss(step: Step) -> dict[str, Term]:
        values = F.cross_entropy(step.output.logits, step.labels, reduction="none")
        return {"half": Term(values, 2 * len(values)), "none": Term(values[:0], 0)} | cross_entropy(step)

    losses = learn_first(plan, phase(replace(SCHEDULE, epochs=1), loss)).losses["main"]
    assert losses["none"] == [0.0]
    assert losses["half"][0] == pytest.approx(losses["ce"][0] / 2)


def test_a_loss_that_is_no_number_stops_the_task(plan: RunSetup) -> None:
    def loss(step: Step) -> dict[str, Term]:
        return {"ce": mean(step.output.logits.sum(1) * torch.nan)}

    with pytest.raises(UserError, match=r"^loss: ce became nan in task 1, epoch 1; try a smaller --lr$"):
        learn_first(plan, phase(loss=loss))


def test_a_weight_that_is_no_number_stops_the_task(plan: RunSetup) -> None:
    """Even where the loss was still a number: it was computed before the step."""

    def loss(step: Step) -> dict[str, Term]:
        return {"ce": mean(1e9 * F.cross_entropy(step.output.logits, step.labels, reduction="none"))}

    with pytest.raises(UserError, match=r"^weights: their sum became -?(nan|inf) in task 1, epoch 1; try a smaller"):
        learn_first(plan, phase(Schedule(epochs=1, lr=(1e308,)), loss, batch=10))


def test_a_batch_of_one_image_is_refused(tmp_path: Path) -> None:
    plan = set_up(tiny_runs.config(tiny_runs.patterns(tmp_path / "one.npz", [1, 1]), tasks=2))
    with pytest.raises(
        UserError,
        match=r"^batch: 1 training image\(s\) for 1 process\(es\), .*; give the task more images, or fewer --tasks$",
    ):
        learn_first(plan, phase())


def test_the_counts_of_a_step_are_those_of_the_task(plan: RunSetup) -> None:
    counts: list[Tensor] = []

    def loss(step: Step) -> dict[str, Term]:
        counts.append(step.counts)
        return cross_entropy(step)

    first, second = plan.stream.tasks
    snapshot = learn(method(phase()), None, Memory(), first, plan.context)
    memory = Memory((first.indices[:2], first.indices[9:]))
    labels = plan.context.samples.labels
    learn(method(phase(loss=loss)), snapshot, memory, second, plan.context)
    expected = torch.bincount(labels[torch.cat([memory.indices, second.indices])], minlength=4)
    assert all(torch.equal(count, expected) for count in counts)


def test_a_task_may_bring_more_images_of_known_classes(plan: RunSetup) -> None:
    """The label decides which group an image belongs to, not the task that brought it."""
    first, second = plan.stream.tasks
    recipe = plan.configured.method
    snapshot = learn(recipe, None, Memory(), first, plan.context)
    memory = Memory((first.indices[:1], first.indices[5:6]))
    mixed = replace(second, indices=torch.cat([second.indices, first.indices[1:4]]))
    seen: list[Step] = []
    ces: list[Tensor] = []

    def spied(classes: ClassTable) -> tuple[Phase, ...]:
        (usual,) = recipe.plan(classes)
        assert isinstance(usual, Phase)

        def loss(step: Step) -> dict[str, Term]:
            seen.append(step)
            terms = usual.loss(step)
            ces.append(terms["ce"].values)
            return terms

        return (replace(usual, loss=loss),)

    learned = learn(replace(recipe, plan=spied), snapshot, memory, mixed, plan.context)
    assert learned.classes == second.classes
    assert max(int((step.labels < second.classes.old).sum()) for step in seen) > 1
    expected = torch.bincount(plan.context.samples.labels[torch.cat([mixed.indices, memory.indices])])
    assert torch.equal(seen[0].counts, expected)
    for step, ce in zip(seen, ces, strict=True):
        groups = [
            slice(0, second.classes.old) if label < second.classes.old else slice(second.classes.old, None)
            for label in step.labels
        ]
        by_hand = [
            step.output.logits[i, group].logsumexp(0) - step.output.logits[i, step.labels[i]]
            for i, group in enumerate(groups)
        ]
        assert torch.allclose(ce, torch.stack(by_hand))


def test_a_loss_that_takes_the_mean_itself_is_refused(plan: RunSetup) -> None:
    def averaged(step: Step) -> dict[str, Term]:
        return {"ce": F.cross_entropy(step.output.logits, step.labels)}  # type: ignore[dict-item]

    with pytest.raises(UserError, match=r"^method: loss part 'ce' is no Term; return ssil.mean"):
        learn_first(plan, phase(loss=averaged))
