"""A run from start to end."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import tiny_runs
from ssil.benchmark import runner
from ssil.benchmark.record import Record, read_record
from ssil.benchmark.runner import RunObserver, run
from ssil.core.errors import UserError
from ssil.learning import engine
from ssil.learning.evaluation import predict
from ssil.learning.metrics import Predictions
from ssil.learning.snapshot import Snapshot
from ssil.learning.task import ProgressReport


class Listener(RunObserver):
    """Notes each call, and stops after a number of steps."""

    def __init__(self, steps: int = 10**9) -> None:
        self.steps, self.reports, self.tasks = steps, list[tuple[int, ProgressReport]](), list[int]()

    def started(self, record: Record) -> None:
        self.tasks.append(len(record.tasks))

    def progress(self, task: int, report: ProgressReport) -> None:
        self.reports.append((task, report))

    def learnt(self, record: Record) -> None:
        self.tasks.append(len(record.tasks))

    def should_stop(self) -> bool:
        return len(self.reports) == self.steps


def test_the_record_tells_the_stream(finished: tuple[Path, Record]) -> None:
    _, record = finished
    assert [task.task for task in record.tasks] == [1, 2, 3]
    assert [task.classes_seen for task in record.tasks] == [2, 4, 6]
    assert [len(task.task_top1) for task in record.tasks] == [1, 2, 3]
    assert record.tasks[0].task_aware_top1 == record.tasks[0].top1
    assert all((task.task_aware_top1 or 0.0) >= task.top1 for task in record.tasks)
    assert [sum(map(sum, task.confusion)) for task in record.tasks] == [8, 16, 24]
    assert record.tasks[1].memory_counts == [2, 2, 2, 2]
    assert record.tasks[2].memory_counts == [2, 2, 1, 1, 1, 1]
    assert [{part: len(values) for part, values in task.loss["main"].items()} for task in record.tasks] == [
        {"ce": 2},
        {"ce": 2, "kd": 2},
        {"ce": 2, "kd": 2},
    ]
    assert all(task.seconds >= sum(task.seconds_by_phase.values()) > 0 for task in record.tasks)
    added = 2 * (16 + 1)  # rows of the head
    first = record.tasks[0].parameters
    assert first
    assert [task.parameters for task in record.tasks] == [first, first + added, first + 2 * added]
    bytes_of = [task.model_bytes for task in record.tasks if task.model_bytes]
    assert [later - bytes_of[0] for later in bytes_of] == [0, 4 * added, 8 * added]


def test_a_finished_run_is_only_read(finished: tuple[Path, Record], dataset: Path) -> None:
    out, record = finished
    listener = Listener()
    assert run(tiny_runs.config(dataset, tasks=3, epochs=2, memory=8, out=out), listener) == record
    assert (listener.tasks, listener.reports) == ([3], [])


def test_observers_are_called_at_every_step(dataset: Path) -> None:
    listener = Listener()
    run(tiny_runs.config(dataset, tasks=2, epochs=2), listener)
    assert listener.tasks == [0, 1, 2]
    told = [(task, report.epoch, report.step) for task, report in listener.reports]
    epochs = [[(0, 1), (0, 2), (0, 3), (1, 0)], [(1, 1), (1, 2), (1, 3), (2, 0)]]
    assert told == [(task, *position) for task in (1, 2) for epoch in epochs for position in epoch]
    assert {(report.epochs, report.steps) for _, report in listener.reports} == {(2, 3)}


def test_a_stopped_run_goes_on_with_adamw(dataset: Path, tmp_path: Path) -> None:
    """And its record states the optimiser, which records of SGD do not."""
    whole, stopped = (
        tiny_runs.config(dataset, tasks=2, epochs=2, lr=0.001, optimizer="adamw", out=tmp_path / name)
        for name in ("whole", "stopped")
    )
    record = run(whole)
    with pytest.raises(KeyboardInterrupt):
        run(stopped, Listener(steps=3))
    run(stopped)
    for name, tensor in tiny_runs.tensors(tmp_path / "whole").items():
        assert torch.equal(tiny_runs.tensors(tmp_path / "stopped")[name], tensor)
    assert record.config["training"]["optimizer"] == "adamw"
    assert "optimizer" not in run(tiny_runs.config(dataset, tasks=2)).config["training"]


def test_a_stopped_run_goes_on_where_it_stopped(dataset: Path, tmp_path: Path) -> None:
    config = tiny_runs.config(dataset, tasks=2, epochs=2, out=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run(config, Listener(steps=10))
    listener = Listener()
    run(config, listener)
    assert listener.tasks == [1, 2]
    _, first = listener.reports[0]
    assert (first.epoch, first.step) == (0, 3)


def test_herding_keeps_other_exemplars_and_the_same_numbers(dataset: Path, tmp_path: Path) -> None:
    kept = []
    for selection in ("random", "herding"):
        run(tiny_runs.config(dataset, tasks=2, memory=6, selection=selection, out=tmp_path / selection))
        kept.append(tiny_runs.tensors(tmp_path / selection)["memory/indices"])
    assert kept[0].shape == kept[1].shape == (6,)
    assert not torch.equal(*kept)


def test_without_a_directory_nothing_is_written(dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(tiny_runs.config(dataset, tasks=2))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("precision", ["64-true", "bf16-mixed"])
def test_other_precisions(dataset: Path, precision: str) -> None:
    """They learn the same stream, not the same bits; precision belongs to what is computed."""
    plain, other = (run(tiny_runs.config(dataset, tasks=2, precision=p)) for p in ("32-true", precision))
    assert other.config["precision"] == precision
    pairs = zip(plain.tasks[0].loss["main"]["ce"], other.tasks[0].loss["main"]["ce"], strict=True)
    assert all(0 < abs(a - b) < 0.1 * a for a, b in pairs)


def test_divergence_in_the_last_step_keeps_the_last_good_state(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny_runs.config(dataset, tasks=2, epochs=2, out=tmp_path / "run")
    learn = engine.learn

    def diverging(*arguments: Any) -> Any:
        snapshot = learn(*arguments)
        task, progress = arguments[3], arguments[5]
        if task.number == 2:
            next(progress.network.parameters()).data.fill_(torch.nan)
        return snapshot

    with monkeypatch.context() as patched:
        patched.setattr(runner, "learn", diverging)
        with pytest.raises(UserError, match=r"weights: their sum became nan in task 2, .*; try a smaller --lr"):
            run(config)
    assert len(read_record(tmp_path / "run").tasks) == 1
    again = run(config)
    undisturbed = run(tiny_runs.config(dataset, tasks=2, epochs=2))
    assert [task.confusion for task in again.tasks] == [task.confusion for task in undisturbed.tasks]


@pytest.mark.parametrize("group", ["score_old", "score_new", "confidence"])
def test_scores_that_are_no_numbers_keep_the_state_before_them(
    group: str, dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finite weights may give infinite scores; the task is then not written, and is learnt again when it goes on."""

    def overflowing(snapshot: Snapshot, *given: Any) -> dict[str, Predictions]:
        found = predict(snapshot, *given)
        wrong = {group: torch.full((len(found["main"].labels),), torch.inf)} if snapshot.classes.task == 2 else {}
        return {name: replace(predictions, **wrong) for name, predictions in found.items()}

    config = tiny_runs.config(dataset, tasks=2, out=tmp_path / "run")
    with monkeypatch.context() as patched:
        patched.setattr(runner, "predict", overflowing)
        kept = "another --out; .*run keeps the state from before, with 1 finished tasks"
        with pytest.raises(UserError, match=f"^scores: became inf in task 2; try a smaller --lr and {kept}$"):
            run(config)
    assert len(read_record(tmp_path / "run").tasks) == 1
    assert tiny_runs.timeless(run(config)) == tiny_runs.timeless(run(tiny_runs.config(dataset, tasks=2)))
