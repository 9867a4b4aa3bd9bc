"""What `ssil run` shows while it trains."""

import io

import pytest
from rich.console import Console

from ssil.benchmark.record import Record
from ssil.cli import demo, progress
from ssil.cli.run_display import RunProgress
from ssil.learning.task import ProgressReport


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What is drawn on a terminal of 100 columns."""
    drawn = io.StringIO()
    terminal = Console(file=drawn, force_terminal=True, highlight=False, width=100, height=14)
    monkeypatch.setattr(progress, "console", lambda: terminal)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    return drawn


def _bars(shown: RunProgress) -> progress.LiveBars:
    assert isinstance(shown.display, progress.LiveBars)
    return shown.display


def _percent(shown: RunProgress, bar: int) -> float:
    return _bars(shown).bars.tasks[bar].percentage


def _drawn(shown: RunProgress, screen: io.StringIO) -> str:
    screen.seek(0)
    screen.truncate()
    _bars(shown).live.refresh()
    return screen.getvalue()


def test_bars(finished_record: Record, screen: io.StringIO) -> None:
    begun = finished_record.after(1)
    with RunProgress() as shown:
        assert "reading the data" in _drawn(shown, screen)
        shown.started(begun)
        shown.progress(2, ProgressReport("main", 1, 4, 1, 2, 100))
        before, text = screen.getvalue(), _drawn(shown, screen)
        assert "going on in task 2, epoch 2/4" in before
        assert "task 2/3" in text
        assert "epoch 2/4" in text
        assert f"{finished_record.tasks[0].top1:.2f}" in text
        assert _percent(shown, 0) == pytest.approx(100 * (1 + 0.375) / 3, abs=0.1)
        assert _percent(shown, 1) == pytest.approx(37.5, abs=0.1)
        shown.learnt(finished_record)
        assert f"{finished_record.tasks[2].top1:.2f}" in _drawn(shown, screen)


def test_a_first_task_of_more_epochs_is_more_of_the_stream(finished_record: Record, screen: io.StringIO) -> None:
    training = finished_record.config["training"] | {"epochs": 6, "later_epochs": 2}
    config = finished_record.config | {"training": training}
    with RunProgress() as shown:
        shown.started(finished_record.after(1).model_copy(update={"config": config}))
        shown.progress(2, ProgressReport("main", 1, 2, 0, 2, 100))
        assert _percent(shown, 0) == pytest.approx(100 * (6 + 1) / (6 + 2 + 2), abs=0.1)


def test_bars_of_several_runs(finished_record: Record, screen: io.StringIO) -> None:
    other = finished_record.model_copy(update={"config": finished_record.config | {"method": "other"}})
    with RunProgress(runs=2, runs_table=demo.accuracy_table) as shown:
        shown.started(finished_record)
        assert _percent(shown, 0) == pytest.approx(50)
        assert finished_record.label in _drawn(shown, screen)
        shown.finished({"main": finished_record})
        shown.started(other.model_copy(update={"tasks": [], "summary": None}))
        text = _drawn(shown, screen)
        assert _percent(shown, 0) == pytest.approx(50)
        assert finished_record.label in text
        assert "other" in text
        assert "run 2/2" in text


def test_bars_of_a_task_with_several_phases(finished_record: Record, screen: io.StringIO) -> None:
    with RunProgress() as shown:
        shown.started(finished_record.after(1))
        shown.progress(2, ProgressReport("balanced", 1, 4, 1, 2, 100, part=1, parts=2))
        assert "going on in task 2, balanced, epoch 2/4" in screen.getvalue()
        assert "balanced, epoch 2/4" in _drawn(shown, screen)
        assert _percent(shown, 1) == pytest.approx(50 + 37.5 / 2, abs=0.1)
