"""The checks of the contract: one function per check, whose docstring says what is tried.

A check raises AssertionError where the method breaks the contract and `NotApplicable` where it has nothing to try.
Any other exception that the method raises counts as a failure too.
"""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from pydantic import TypeAdapter

from ssil.benchmark.runner import run
from ssil.learning.batches import Replay
from ssil.learning.engine import learn
from ssil.learning.task import Task
from ssil.testing import small_stream
from ssil.testing.method_trace import LossCall, Trial, equal, scores, set_up, trace, weights
from ssil.testing.small_stream import IMAGES, SETTINGS, StopAfter, StopAfterTask, without_costs

REFERENCES = ("ft", "er", "lwf")
"""Built-in methods with mixed, replay and new-only batches, with which a method's first batch is compared."""


class NotApplicable(Exception):  # noqa: N818  # not an error: the check has nothing to try
    """Raised by a check that does not apply to a method; the message says why."""


Check = Callable[[Trial], None]


def options_are_typed_and_have_defaults(trial: Trial) -> None:
    """Every option has a type and a default that fits it, and the docstring begins with a sentence."""
    parameters = list(inspect.signature(trial.recipe.build).parameters)
    assert parameters[:1] == ["training"], f"the first parameter is {parameters[:1]}; call it `training`"
    for option, (annotation, default) in trial.recipe.options.items():
        assert annotation is not inspect.Parameter.empty, f"option {option!r} has no type"
        if default is ...:
            assert option in trial.options, f"option {option!r} has no default; give one, or check with {option}=VALUE"
        else:
            fitting = TypeAdapter(annotation).validate_python(default, strict=True)
            assert fitting == default, f"the default of option {option!r} does not fit its type"
    assert trial.recipe.summary.endswith("."), "the first line of the docstring is not a sentence"


def learns_a_stream_of_uneven_tasks(trial: Trial) -> None:
    """Learn three tasks of 3, 1 and 2 classes, with 1 to 6 images per class; the first has no memory and no teacher."""
    first = trial.tasks[0]
    assert len(first.memory) == 0
    taught = [call.phase.name for call in first.calls if call.teachers]
    assert not taught, f"phase {taught[0]!r} had a teacher in the first task"


def loss_terms_are_finite_and_have_a_gradient(trial: Trial) -> None:
    """Every loss returns named, finite terms with a gradient that is finite and not zero."""
    if not any(trial.calls):
        raise NotApplicable("the method trains nothing")
    for task, call in trial.calls:
        where = f"in task {task.task.number}, phase {call.phase.name!r}"
        assert call.terms, f"{where}: the loss has no terms"
        for name, term in call.terms.items():
            assert name.isidentifier(), f"{where}: {name!r} can't be the name of a term"
            assert term.values.isfinite().all(), f"{where}: term {name!r} has values that are not finite"
            assert term.values.requires_grad, f"{where}: term {name!r} has no gradient"
            assert term.divisor > 0 or not len(term.values), f"{where}: term {name!r} has the divisor {term.divisor}"
        assert call.gradient.isfinite().all(), f"{where}: the gradient is not finite"
        assert call.gradient.any(), f"{where}: the gradient is zero"


def scores_cover_all_classes_seen(trial: Trial) -> None:
    """After each task the scores of a batch have one column per class seen so far, and no NaN."""
    for task in trial.tasks:
        wanted = (len(task.scores), task.task.classes.seen)
        assert tuple(task.scores.shape) == wanted, f"scores have the shape {tuple(task.scores.shape)}, not {wanted}"
        assert not task.scores.isnan().any(), f"scores after task {task.task.number} are NaN"


def a_score_does_not_depend_on_its_batch(trial: Trial) -> None:
    """The test images scored one by one and all at once get the same scores, up to 1e-5 of the largest."""
    plan = set_up(trial.name, trial.dataset, options=trial.options)
    for task in trial.tasks:
        alone = scores(task.snapshot, plan, batch=1)
        difference = float((alone - task.scores).abs().max() / task.scores.abs().max())
        assert difference <= 1e-5, f"after task {task.task.number} scores differ by {difference:.1e} of the largest"


def earlier_snapshots_stay_as_they_were(trial: Trial) -> None:
    """After the last task, the snapshots of all tasks give bit for bit the scores they gave at first."""
    plan = set_up(trial.name, trial.dataset, options=trial.options)
    for task in trial.tasks:
        again = scores(task.snapshot, plan)
        assert torch.equal(again, task.scores), f"the snapshot of task {task.task.number} gives other scores now"


def the_teacher_is_not_changed(trial: Trial) -> None:
    """While a task is learnt, the previous model's weights and batch-norm statistics stay, without gradients."""
    for task in trial.tasks[1:]:
        assert task.teacher is not None
        number = task.task.number
        assert equal(weights(task.teacher), task.teacher_before), f"task {number} changed the previous model"
        assert not task.teacher.network.training, f"task {number} put the previous model into training mode"
        for weight in task.teacher.network.parameters():
            assert weight.grad is None, f"task {number} left a gradient in the previous model"
            assert not weight.requires_grad, f"task {number} made the previous model trainable"
    for task, call in trial.calls:
        for output in call.teachers.values():
            tracked = output.output.logits.requires_grad or output.scores.requires_grad
            assert not tracked, f"in task {task.task.number} a teacher's output has a gradient"


def trains_on_the_task_and_the_memory_alone(trial: Trial) -> None:
    """Every training image that is fetched is one of the task's or an exemplar of an earlier class."""
    for task in trial.tasks:
        assert (trial.labels[task.memory.indices] < task.task.classes.old).all()
        allowed = {*task.task.indices.tolist(), *task.memory.indices.tolist()}
        others = {*torch.cat(task.fetched).tolist()} - allowed
        assert not others, f"in task {task.task.number} {len(others)} images were fetched that it may not use"


def replay_batches_keep_their_ratio(trial: Trial) -> None:
    """With `Replay` batches, every batch has exactly as many replayed and new images as the rule states."""
    rules = [(call.phase.batches, task, call) for task, call in trial.calls if len(task.memory)]
    replayed = [(rule, task, call) for rule, task, call in rules if isinstance(rule, Replay)]
    if not replayed:
        raise NotApplicable("no phase has replay batches")
    for rule, task, call in replayed:
        old = int(call.replayed.sum())
        new = len(call.labels) - old
        wanted = (rule.replay, min(rule.batch, len(task.task.indices)))
        assert (old, new) == wanted, f"a batch has {old} replayed and {new} new images, not {wanted}"


def one_seed_gives_the_same_start(trial: Trial) -> None:
    """Built-in methods with the same seed have the same tasks, exemplars and, under an equal rule, first batch."""
    compared = 0
    for name in REFERENCES:
        for mine, theirs in zip(trial.tasks, trace(name, trial.dataset), strict=True):
            assert mine.task.classes == theirs.task.classes
            assert torch.equal(mine.task.indices, theirs.task.indices)
            if mine.memory.counts != theirs.memory.counts or not (mine.calls and theirs.calls):
                continue
            assert torch.equal(mine.memory.indices, theirs.memory.indices), f"the exemplars are not those of {name}"
            if _same_rule(mine.calls[0], theirs.calls[0]):
                compared += 1
                same = torch.equal(mine.calls[0].indices, theirs.calls[0].indices)
                assert same, (
                    f"task {mine.task.number} does not begin with the batch that {name} has under the same rule"
                )
    if not compared:
        raise NotApplicable("no built-in method has the same rule for its batches")


def _same_rule(mine: LossCall, theirs: LossCall) -> bool:
    """Return whether two phases are named alike and draw batches of all images by the same kind of rule."""
    rules = mine.phase.batches, theirs.phase.batches
    return (
        mine.phase.name == theirs.phase.name
        and isinstance(rules[0], type(rules[1]))
        and vars(rules[0]) == vars(rules[1])
        and mine.phase.images is theirs.phase.images
    )


def equal_seeds_give_equal_records(trial: Trial) -> None:
    """Two runs with one seed leave equal records, with and without a run directory; another seed leaves another."""
    assert without_costs(trial.run()) == without_costs(trial.record), "two runs with one seed differ"
    mine, other = trial.record.tasks[0], trial.run(seed=1).tasks[0]
    differ = mine.loss != other.loss if mine.loss else mine.score_new != other.score_new
    assert differ, f"another seed gives the same {'losses' if mine.loss else 'scores'}"


def a_resumed_run_equals_an_uninterrupted_one(trial: Trial) -> None:
    """A run that is stopped every three steps and resumed ends with the same record, weights and predictions.

    A method without training steps is stopped after each task.
    """
    expected, stops, record, trains = trial.record, 0, None, any(trial.calls)
    while record is None:
        try:
            record = trial.run("stopped", StopAfter(3) if trains else StopAfterTask())
        except KeyboardInterrupt:
            stops += 1
    wanted = 3 if trains else len(trial.tasks) - 1
    assert stops >= wanted, f"the run was stopped {stops} times only: its tasks have too few steps to tell"
    whole, resumed = trial.folder / "whole", trial.folder / "stopped"
    assert without_costs(record) == without_costs(expected), "the resumed run's record differs"
    assert equal(small_stream.tensors(resumed), small_stream.tensors(whole)), "the resumed run's weights differ"
    for file in sorted((whole / "arrays").iterdir()):
        same = (resumed / "arrays" / file.name).read_bytes() == file.read_bytes()
        assert same, f"the resumed run's predictions differ ({file.name})"


def the_memory_stays_within_its_budget(trial: Trial) -> None:
    """The exemplars kept after each task are within a fixed budget, and within a growing one."""
    kind = trial.method.memory
    budget = {"none": 0, "budget": SETTINGS["memory"], "all": sum(IMAGES)}[kind]
    kept = [sum(task.memory_counts) for task in trial.record.tasks]
    assert max(kept) <= budget, f"{max(kept)} exemplars are kept with a budget of {budget}"
    assert kept[-1] == budget, f"{kept[-1]} exemplars are kept at the end; there is room for {budget}"
    if kind == "budget":
        growing = trial.run(memory=None, memory_per_class=2)
        wanted = [min(2, IMAGES[label]) for label in growing.class_order]
        assert growing.tasks[-1].memory_counts == wanted, "a budget of two exemplars per class is not kept"


def more_than_a_hundred_classes(trial: Trial) -> None:
    """Learn two tasks of 52 classes each."""
    dataset = small_stream.patterns(trial.folder / "many.npz", [2] * 104, test=1)
    settings = {"tasks": 2, "batch": 64, "later_epochs": 1, "method": trial.name, "options": trial.options}
    record = run(small_stream.config(dataset, **settings))
    assert [task.classes_seen for task in record.tasks] == [52, 104]
    assert record.summary is not None


def a_task_may_bring_known_classes_alone(trial: Trial) -> None:
    """Learn a task that brings more images of known classes and no new class, and after it new classes again."""
    plan, (first, before, last) = set_up(trial.name, trial.dataset, options=trial.options), trial.tasks
    more = Task(before.task.classes.extend([]), first.task.indices)
    again = Task(more.classes.extend(last.task.classes.names[more.classes.seen :]), last.task.indices)
    snapshot = before.snapshot
    for task in (more, again):
        snapshot = learn(plan.configured.method, snapshot, last.memory, task, plan.context)
        found = scores(snapshot, plan)
        assert found.shape[1] == task.classes.seen
        assert not found.isnan().any(), "scores are NaN after a task without new classes"
        finite = found.isfinite().sum(1) >= min(5, found.shape[1])
        assert finite.all(), "fewer than five classes have a finite score after a task without new classes"


def a_task_of_one_class_is_learnt(trial: Trial) -> None:
    """On an easy stream with tasks of one class, over half of a new class is recognised right after its task."""
    dataset = small_stream.patterns(trial.folder / "easy.npz", [8] * 6)
    settings: dict[str, Any] = {"task_sizes": (4, 1, 1), "epochs": 12, "later_epochs": 12, "batch": 8, "memory": 24}
    record = run(small_stream.config(dataset, **settings, method=trial.name, options=trial.options))
    for task in record.tasks:
        newest = task.task_top1[-1] or 0.0
        assert newest > 50, f"of task {task.task} only {newest:.0f} % is recognised right after it"


CHECKS: tuple[Check, ...] = (
    options_are_typed_and_have_defaults,
    learns_a_stream_of_uneven_tasks,
    loss_terms_are_finite_and_have_a_gradient,
    scores_cover_all_classes_seen,
    a_score_does_not_depend_on_its_batch,
    earlier_snapshots_stay_as_they_were,
    the_teacher_is_not_changed,
    trains_on_the_task_and_the_memory_alone,
    replay_batches_keep_their_ratio,
    one_seed_gives_the_same_start,
    equal_seeds_give_equal_records,
    a_resumed_run_equals_an_uninterrupted_one,
    the_memory_stays_within_its_budget,
    more_than_a_hundred_classes,
    a_task_may_bring_known_classes_alone,
    a_task_of_one_class_is_learnt,
)
"""All checks, in the order in which they are run: what is quick and basic comes first."""
