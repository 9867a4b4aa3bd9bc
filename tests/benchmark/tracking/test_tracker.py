"""Runs are followed live, each point once, whatever happens to the process or to the store."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import tiny_runs
from ssil.benchmark.record import Record
from ssil.benchmark.runner import RunObserver, RunObservers, run
from ssil.benchmark.tracking.backends import Hyperparameter
from ssil.benchmark.tracking.tracker import Tracker, history, hyperparameters
from ssil.core.errors import UserError
from ssil.learning.task import ProgressReport

STEPS = 9


class Memo:
    """A store that writes down what it is told, and fails at one step."""

    viewer = "nowhere"

    def __init__(self, fails: int = 0) -> None:
        self.fails, self.begun, self.points, self.ended = fails, list[Any](), list[Any](), list[bool]()

    def begin(self, run: str | None, step: int, name: str, settings: Mapping[str, Hyperparameter]) -> str:
        self.begun.append((run, step))
        return "id"

    def log(self, step: int, values: Mapping[str, float]) -> None:
        if step == self.fails:
            raise OSError("the server is gone\nfor good")
        self.points.append((step, dict(values)))

    def end(self, finished: bool) -> None:
        self.ended.append(finished)

    @property
    def steps(self) -> list[int]:
        return [step for step, _ in self.points]


def track(store: Memo, folder: Path, said: list[str] | None = None) -> Tracker:
    return Tracker(store, folder / "memo.json", (said if said is not None else []).append)


def follow(tracker: RunObserver, record: Record, done: int = 0, last: int | None = None) -> None:
    """What a run tells that goes on after `done` tasks; a process that is killed stops after an epoch of `last`."""
    tracker.started(record.after(done))
    for task in record.tasks[done:last]:
        images = 0
        for epoch in (1, 2):
            for step in (1, 2, 0):
                images += 8 * bool(step)
                tracker.progress(task.task, ProgressReport("main", epoch - (step > 0), 2, step, 2, images))
            losses = {"main": {part: values[:epoch] for part, values in task.loss["main"].items()}}
            tracker.epoch(task.task, losses)
            if task.task == last:
                return
        tracker.learnt(record.after(task.task))
    tracker.finished({"main": record})


# ---- the points


def test_every_epoch_and_every_evaluation_has_a_step(whole: Record) -> None:
    points = dict(history(whole))
    assert [*points] == [*range(1, STEPS + 1)]
    assert points[2] == {"loss/main/ce": whole.tasks[0].loss["main"]["ce"][1]}
    assert set(points[5]) == {"loss/main/ce", "loss/main/kd"}
    assert (points[3]["accuracy/top1"], points[6]["accuracy/top1"]) == (50.0, 25.0)
    assert (points[9]["task_top1/01"], points[9]["task_top1/02"], points[9]["task_top1/03"]) == (50.0, 12.5, 0.0)
    assert points[9]["bias/newest_share"] == 0.0
    assert points[9]["bias/latest_share"] == 0.0
    assert points[9]["memory/exemplars"] == 12
    assert points[9]["summary/average_top1"] == pytest.approx(31.944, abs=1e-3)
    assert "summary/average_top1" not in points[6]


def test_what_a_first_task_has_not_is_left_out(whole: Record) -> None:
    first = history(whole)[2][1]
    assert {"bias/score_new", "bias/softmax_new"} == {name for name in first if name.startswith("bias/")}
    assert all(isinstance(value, float) for value in first.values())


def test_settings_are_plain(whole: Record) -> None:
    described = hyperparameters(whole)
    assert (described["method"], described["training.lr"], described["task_sizes"]) == ("ssil", 0.1, "[2, 2, 2]")
    assert all(isinstance(value, Hyperparameter) for value in described.values())


# ---- each point once


def test_a_run_is_followed(whole: Record, tmp_path: Path) -> None:
    store = Memo()
    with track(store, tmp_path) as tracked:
        follow(tracked, whole)
    speeds = [values.pop("images_per_second/epoch", None) for _, values in store.points]
    assert store.points == history(whole)
    assert [bool(speed) for speed in speeds] == [True, True, False] * 3
    assert (store.begun, store.ended) == ([(None, 0)], [True])


def test_without_being_told_of_epochs_it_sends_them_with_the_task(whole: Record, tmp_path: Path) -> None:
    store = Memo()
    with track(store, tmp_path) as tracked:
        tracked.started(whole.after(0))
        tracked.learnt(whole.after(1))
        assert store.points == history(whole.after(1))


@pytest.mark.parametrize("last", [1, 2, 3])
def test_a_killed_run_goes_on(last: int, whole: Record, tmp_path: Path) -> None:
    """The epoch after the last checkpoint is learnt again, and not sent again."""
    store = Memo()
    follow(track(store, tmp_path), whole, last=last)
    assert store.steps == [*range(1, 3 * last - 1)]
    follow(track(store, tmp_path), whole, done=last - 1)
    assert store.steps == [*range(1, STEPS + 1)]
    assert store.begun == [(None, 0), ("id", 3 * last - 2)]


def test_a_run_that_was_not_followed_from_the_start_is_made_up_for(whole: Record, tmp_path: Path) -> None:
    store = Memo()
    follow(track(store, tmp_path), whole, done=2)
    assert store.steps == [*range(1, STEPS + 1)]


def test_a_finished_run_is_sent_once(whole: Record, tmp_path: Path) -> None:
    store = Memo()
    for _ in range(2):
        with track(store, tmp_path) as tracked:
            follow(tracked, whole, done=3)
    assert store.steps == [*range(1, STEPS + 1)]
    assert len(store.begun) == len(store.ended) == 1


class Stop(RunObserver):
    """Stops after so many steps."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def should_stop(self) -> bool:
        self.left -= 1
        return self.left == 0


@pytest.mark.parametrize("steps", [1, 4, 6, 11])
def test_a_run_stopped_anywhere_is_tracked_once(steps: int, tmp_path: Path) -> None:
    data = tiny_runs.patterns(tmp_path / "patterns.npz", [5] * 5)
    config, store = tiny_runs.config(data, task_sizes=(3, 2), epochs=3, memory=8, out=tmp_path / "out"), Memo()
    with pytest.raises(KeyboardInterrupt), track(store, tmp_path) as tracked:
        run(config, RunObservers(tracked, Stop(steps)))
    with track(store, tmp_path) as tracked:
        record = run(config, tracked)
    for _, values in store.points:
        values.pop("images_per_second/epoch", None)
    assert store.points == history(record)
    assert store.ended == [False, True]


def test_what_fails_ends_the_tracking_not_the_run(whole: Record, tmp_path: Path) -> None:
    said: list[str] = []
    with track(Memo(fails=4), tmp_path, said) as tracked:
        follow(tracked, whole)
    assert said == ["tracking stopped: the server is gone; the same command, when the run is done, sends the rest"]
    store = Memo()
    follow(track(store, tmp_path), whole, done=3)
    assert store.begun == [("id", 3)]
    assert store.steps == [*range(4, STEPS + 1)]


def test_what_can_not_begin_is_refused(whole: Record, tmp_path: Path) -> None:
    (tmp_path / "memo.json").write_text("{")
    with pytest.raises(UserError, match=r"^track: .*; remove .*memo.json to track from the start, or leave --track"):
        track(Memo(), tmp_path).started(whole)


def test_several_observers(whole: Record) -> None:
    heard: list[tuple[str, Any]] = []

    class Ear(RunObserver):
        def __getattribute__(self, name: str) -> Any:
            return lambda *said: heard.append((name, said))

    both = RunObservers(Ear(), Ear())
    report, losses = ProgressReport("main", 1, 2, 0, 1, 8), {"main": {"ce": [1.0]}}
    calls = {
        "reading": (1, 2),
        "features": (3, 4),
        "started": (whole,),
        "progress": (1, report),
        "epoch": (1, losses),
        "learnt": (whole,),
        "finished": ({"main": whole},),
    }
    for name, said in calls.items():
        getattr(both, name)(*said)
    assert heard == [call for call in calls.items() for _ in both.observers]
    assert {name for name in vars(RunObserver) if not name.startswith("_")} <= {*calls, "should_stop"}
    assert RunObservers(RunObserver(), Stop(1)).should_stop()
    assert not RunObservers(RunObserver(), Stop(2)).should_stop()
