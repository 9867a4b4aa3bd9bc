"""Each check of the contract catches a method that is broken on purpose."""

import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from ssil.core.classes import ClassTable
from ssil.learning import losses
from ssil.learning.batches import Batch, Batches, Mixed, Pool, Replay
from ssil.learning.method import Loss, Method, Phase, Stage, Term, cross_entropy, mean
from ssil.learning.registry import RECIPES
from ssil.learning.schedule import Training
from ssil.learning.snapshot import MAIN, Scorer, Step, TaskState
from ssil.methods.ssil import ssil
from ssil.nn.heads import LinearHead
from ssil.nn.network import Output
from ssil.testing import CHECKS, CheckOutcome, CheckResult, check_method, run_checks

RecipeFunction = Callable[..., Method]


def fine_tuning(training: Training, loss: Loss = cross_entropy, batches: Batches | None = None, **more: Any) -> Method:
    """Plain fine-tuning, of which each broken method changes one thing."""

    def plan(classes: ClassTable) -> tuple[Phase, ...]:
        rule = batches or Mixed(training.batch)
        return (Phase("main", loss, rule, training.schedule(classes.task), **more),)

    return Method(plan, LinearHead)


def sound(training: Training) -> Method:
    """Sound: plain fine-tuning."""
    return fine_tuning(training)


def untyped(training: Training, *, strength=1.0) -> Method:  # type: ignore[no-untyped-def]
    """Untyped: an option without a type."""
    return fine_tuning(training)


def needs_a_teacher(training: Training) -> Method:
    """Needs a teacher: the loss asks for the old model in the first task too."""

    def loss(step: Step) -> dict[str, Term]:
        return {"kd": mean(losses.gkd(step.output.logits, step.teachers["old"].scores, 2.0))}

    return fine_tuning(training, loss)


def without_gradient(training: Training) -> Method:
    """Without gradient: a second term from which nothing can be learnt."""

    def loss(step: Step) -> dict[str, Term]:
        return {**cross_entropy(step), "constant": mean(step.output.logits.detach().square().sum(1))}

    return fine_tuning(training, loss)


def narrow_scores(training: Training) -> Method:
    """Narrow scores: only the first three classes are scored."""

    class Narrow(Scorer):
        def forward(self, output: Output, classes: ClassTable) -> Tensor:
            return output.logits[:, :3]

    return replace(fine_tuning(training), scorers={MAIN: Narrow})


def centred_scores(training: Training) -> Method:
    """Centred scores: the mean over the batch is subtracted."""

    class Centred(Scorer):
        def forward(self, output: Output, classes: ClassTable) -> Tensor:
            return output.logits - output.logits.mean(0)

    return replace(fine_tuning(training), scorers={MAIN: Centred})


def shared_state(training: Training) -> Method:
    """Shared state: all snapshots share one number, which every task changes."""
    shift = [0.0]

    class Shifted(Scorer):
        def forward(self, output: Output, classes: ClassTable) -> Tensor:
            return output.logits + shift[0]

        def fit(self, work: TaskState) -> None:
            shift[0] += 1.0

    return replace(fine_tuning(training), scorers={MAIN: Shifted})


def spoils_the_teacher(training: Training) -> Method:
    """Spoils the teacher: a stage changes the previous model."""

    def spoil(work: TaskState) -> None:
        if work.previous:
            work.previous.network.head.weight.data += 1.0

    def plan(classes: ClassTable) -> tuple[Phase | Stage, ...]:
        return (*fine_tuning(training).plan(classes), Stage("spoil", spoil))

    return Method(plan, LinearHead)


def keeps_all_images(training: Training) -> Method:
    """Keeps all images: trains on all images of known classes, not only on exemplars."""

    def everything(pool: Pool, classes: ClassTable, random: Any) -> Pool:
        return replace(pool, new=(pool.labels < classes.seen).nonzero()[:, 0], old=pool.old[:0])

    return fine_tuning(training, images=everything)


@dataclass(frozen=True)
class HalfReplay(Replay):
    """A replay rule that leaves out half of its exemplars."""

    def epoch(self, pool: Pool, random: Any, epoch: int) -> Callable[[int], Batch]:
        batch = super().epoch(pool, random, epoch)
        return lambda step: Batch(batch(step).main, batch(step).replayed[: self.replay // 2])


def half_replay(training: Training) -> Method:
    """Half replay: fewer exemplars in a batch than the rule states."""
    return fine_tuning(training, batches=HalfReplay(training.batch, 2))


@dataclass(frozen=True)
class OwnOrder(Mixed):
    """A rule that shuffles by a seed of its own."""

    def epoch(self, pool: Pool, random: Any, epoch: int) -> Callable[[int], Batch]:
        images = self.images(pool)
        order = images[torch.randperm(len(images), generator=torch.Generator().manual_seed(3))]
        return lambda step: Batch(order[step * self.batch : (step + 1) * self.batch], pool.old[:0])


def own_order(training: Training) -> Method:
    """Own order: the batches are not those that other methods have with the run's seed."""
    return fine_tuning(training, batches=OwnOrder(training.batch))


def by_the_clock(training: Training) -> Method:
    """By the clock: the loss depends on the time of day."""

    def loss(step: Step) -> dict[str, Term]:
        values = losses.cross_entropy(step.output.logits, step.labels)
        return {"ce": mean(values * (1 + time.perf_counter() % 1))}

    return fine_tuning(training, loss)


def counts_its_steps(training: Training) -> Method:
    """Counts its steps: the loss has a state that no checkpoint keeps."""
    steps = [0]

    def loss(step: Step) -> dict[str, Term]:
        steps[0] += 1
        return {"ce": mean(losses.cross_entropy(step.output.logits, step.labels) * (1 + steps[0]))}

    return fine_tuning(training, loss)


class Greedy(Method):
    """A method that states to the run that it needs all images, and to everybody else that it keeps to the budget."""

    asked = 0

    def __getattribute__(self, name: str) -> Any:
        if name != "memory":
            return super().__getattribute__(name)
        Greedy.asked += 1
        return "budget" if Greedy.asked == 1 else "all"


def greedy(training: Training) -> Method:
    """Greedy: keeps more exemplars than its budget allows."""
    Greedy.asked = 0
    return Greedy(fine_tuning(training).plan, LinearHead)


def at_most_a_hundred(training: Training) -> Method:
    """At most a hundred: class weights in a table of a fixed size."""
    table = torch.ones(100)

    def loss(step: Step) -> dict[str, Term]:
        return {"ce": mean(losses.cross_entropy(step.output.logits, step.labels) * table[step.labels])}

    return fine_tuning(training, loss)


def by_new_classes(training: Training) -> Method:
    """By new classes: the loss is divided by their number, which may be zero."""

    def loss(step: Step) -> dict[str, Term]:
        values = losses.cross_entropy(step.output.logits, step.labels)
        return {"ce": mean(values / torch.tensor(float(step.classes.new)))}

    return fine_tuning(training, loss)


def softmax_of_one(training: Training) -> Method:
    """Softmax of one: a new class that is alone in its softmax gets no gradient (SS-IL without `min_group`)."""
    return ssil(training, min_group=1)


BROKEN: dict[str, RecipeFunction] = {
    "options_are_typed_and_have_defaults": untyped,
    "learns_a_stream_of_uneven_tasks": needs_a_teacher,
    "loss_terms_are_finite_and_have_a_gradient": without_gradient,
    "scores_cover_all_classes_seen": narrow_scores,
    "a_score_does_not_depend_on_its_batch": centred_scores,
    "earlier_snapshots_stay_as_they_were": shared_state,
    "the_teacher_is_not_changed": spoils_the_teacher,
    "trains_on_the_task_and_the_memory_alone": keeps_all_images,
    "replay_batches_keep_their_ratio": half_replay,
    "one_seed_gives_the_same_start": own_order,
    "equal_seeds_give_equal_records": by_the_clock,
    "a_resumed_run_equals_an_uninterrupted_one": counts_its_steps,
    "the_memory_stays_within_its_budget": greedy,
    "more_than_a_hundred_classes": at_most_a_hundred,
    "a_task_may_bring_known_classes_alone": by_new_classes,
    "a_task_of_one_class_is_learnt": softmax_of_one,
}
"""By check: a method that the check must catch."""


def results(recipe: RecipeFunction) -> dict[str, CheckResult]:
    return {result.name: result for result in run_checks(recipe)}


def test_every_check_has_a_broken_method() -> None:
    assert list(BROKEN) == [check.__name__ for check in CHECKS]


@pytest.mark.parametrize("check", BROKEN)
def test_a_broken_method_is_caught(check: str) -> None:
    found = results(BROKEN[check])[check]
    assert found.outcome is CheckOutcome.FAILED
    assert found.reason


def test_the_method_that_the_broken_ones_are_made_of_is_sound() -> None:
    found = results(sound)
    unsuited = [name for name, result in found.items() if result.outcome is CheckOutcome.NOT_APPLICABLE]
    assert unsuited == ["replay_batches_keep_their_ratio"]
    assert {result.outcome for name, result in found.items() if name not in unsuited} == {CheckOutcome.PASSED}


def test_a_method_that_learns_nothing_is_tried_no_further() -> None:
    found = results(needs_a_teacher)
    line = inspect.getsourcelines(needs_a_teacher)[1] + 4
    assert found["learns_a_stream_of_uneven_tasks"].reason == f"KeyError: 'old' (test_broken_methods.py, line {line})"
    assert found["the_teacher_is_not_changed"].outcome is CheckOutcome.NOT_RUN


def freezing(training: Training) -> Method:
    """Freezing: a stage freezes the network, which the phase after it would undo."""
    sound_plan = fine_tuning(training).plan

    def freeze(state: TaskState) -> None:
        state.network.requires_grad_(False)

    return Method(lambda classes: (Stage("freeze", freeze), *sound_plan(classes)), LinearHead)


def test_a_stage_that_freezes_is_told_the_way() -> None:
    assert "Phase(frozen=...)" in results(freezing)["learns_a_stream_of_uneven_tasks"].reason


def test_check_method_lists_what_failed() -> None:
    with pytest.raises(
        AssertionError, match=r"(?s)1 of 16 checks failed:\n- a_task_of_one_class_is_learnt: of task 2 "
    ):
        check_method(ssil, min_group=1)


def test_a_function_is_registered_only_while_it_is_checked() -> None:
    before = dict(RECIPES)
    check_method(sound)
    assert before == RECIPES
