"""A run of several phases that is stopped goes on as if it had not been, wherever that happens."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import tiny_runs
from phase_plans import Scaled, cross_entropy, equal
from ssil.benchmark.runner import RunObserver, run
from ssil.core.classes import ClassTable
from ssil.learning import stages, training_subsets
from ssil.learning.batches import Mixed
from ssil.learning.method import Method, Phase, Stage, StepPosition, TaskPlan, Term, mean
from ssil.learning.schedule import Training
from ssil.learning.snapshot import MAIN, Scorer, Step, TaskState
from ssil.learning.task import ProgressReport
from ssil.nn.heads import LinearHead
from ssil.nn.network import Output


class Fitted(Scaled):
    """A scorer with all kinds of state: a learnt scale, a mean for each class, which grows with the classes."""

    means: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("means", torch.empty(0))

    def fit(self, work: TaskState) -> None:
        self.means = torch.cat([self.means, work.outputs(work.pool.all).logits.mean(0)[len(self.means) :]])

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        known = F.pad(self.means, (0, output.logits.shape[1] - len(self.means)))
        return self.scale * (output.logits - known)


def everything(training: Training) -> Method:
    """All that a plan may have, in one method."""

    def distilled(step: Step) -> dict[str, Term]:
        views = {name: view.scores for name, view in step.teachers.items()}
        gaps = {name: step.scores[:, : scores.shape[1]] - scores for name, scores in views.items()}
        return cross_entropy(step) | {name: mean(0.1 * gap.square().sum(1)) for name, gap in gaps.items()}

    def jolt(work: TaskState, moment: StepPosition) -> None:
        generator = work.random.at("jolt", moment.epoch, moment.step)
        for parameter in work.network.parameters():
            assert parameter.grad is not None
            parameter.grad += 0.01 * torch.randn(parameter.shape, generator=generator)

    def shrink(work: TaskState) -> None:
        work.network.head.weight.data[work.classes.old :] *= 0.5

    def plan(classes: ClassTable) -> TaskPlan:
        schedule, mixed = training.schedule(classes.task), Mixed(training.batch)
        old = ("old",) if classes.old else ()
        common = partial(Phase, loss=distilled, batches=mixed, schedule=schedule)
        return (
            Stage("before", shrink),
            common("expert", start="previous", keep_as="expert", gradients=jolt, project=stages.keep_old_rows),
            common("main", start="previous", teachers=(*old, "expert"), keep_as="student"),
            Stage("shrink", shrink),
            common(
                "tuning",
                trained="head",
                teachers=("student", "expert"),
                images=training_subsets.balanced if old else None,
            ),
            common("fit", trained="scorer"),
            Stage("after", shrink),
        )

    return Method(plan, head=LinearHead, scorers={MAIN: Fitted, "plain": Scorer, "other": Fitted})


class Steps(RunObserver):
    """Counts the steps and the ends of epochs; may stop after each."""

    def __init__(self, stopping: bool) -> None:
        self.stopping, self.count = stopping, 0

    def progress(self, task: int, report: ProgressReport) -> None:
        self.count += 1

    def should_stop(self) -> bool:
        return self.stopping


@pytest.mark.parametrize(
    ("name", "options", "epochs"),
    [
        pytest.param(f"{__file__}:everything", {}, 1, id="everything"),
        pytest.param("eeil", {"grad_noise": True, "balanced_distil": "all"}, 2, id="eeil"),
        pytest.param("uw", {}, 2, id="uw"),
    ],
)
def test_a_run_may_stop_at_every_step(name: str, options: dict[str, Any], epochs: int, tmp_path: Path) -> None:
    """A run that is stopped after every single step, in every phase, ends as one that nobody stopped, bit for bit."""
    dataset = tiny_runs.patterns(tmp_path / "patterns.npz", [4] * 4)
    config = partial(tiny_runs.config, dataset, method=name, tasks=2, epochs=epochs, memory=5, options=options)
    undisturbed, stops = Steps(stopping=False), 0
    whole = run(config(out=tmp_path / "whole"), undisturbed)
    while True:
        try:
            record = run(config(out=tmp_path / "stopped"), Steps(stopping=True))
            break
        except KeyboardInterrupt:
            stops += 1
    assert stops == undisturbed.count + 1  # a run may also stop between its two tasks
    assert tiny_runs.timeless(record) == tiny_runs.timeless(whole)
    assert equal(tiny_runs.tensors(tmp_path / "stopped"), tiny_runs.tensors(tmp_path / "whole"))
    for file in sorted((tmp_path / "whole").rglob("arrays/*")):
        assert (tmp_path / "stopped" / file.relative_to(tmp_path / "whole")).read_bytes() == file.read_bytes()
