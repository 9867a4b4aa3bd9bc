"""What a terminal shows, and the demo."""

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import tiny_runs
from ssil.benchmark.record import Record, read_record
from ssil.benchmark.runner import run
from ssil.cli import bars, comparison, demo, main
from ssil.cli.terminal_tables import headlines, title
from ssil.learning.task import Pace


@pytest.fixture(scope="module")
def patterns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("terminal") / "patterns.npz", [5] * 6)


@pytest.fixture(scope="module")
def whole(patterns: Path) -> Record:
    """The record of a finished run."""
    return run(tiny_runs.config(patterns, tasks=3))


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What is drawn on a terminal of 100 columns."""
    drawn = io.StringIO()
    terminal = Console(file=drawn, force_terminal=True, highlight=False, width=100, height=14)
    monkeypatch.setattr(bars, "console", lambda: terminal)
    return drawn


def _drawn(board: bars.Bars, screen: io.StringIO) -> str:
    screen.seek(0)
    screen.truncate()
    board.live.refresh()
    return screen.getvalue()


def test_bars(whole: Record, screen: io.StringIO) -> None:
    begun = whole.model_copy(update={"tasks": whole.tasks[:1], "summary": None})
    with bars.Bars() as shown:
        assert "reading the data" in _drawn(shown, screen)
        shown.started(begun)
        shown.pace(2, Pace("main", 1, 4, 1, 2, 100))
        before, text = screen.getvalue(), _drawn(shown, screen)
        assert "going on in task 2, epoch 2/4" in before
        assert "task 2/3" in text
        assert "epoch 2/4" in text
        assert f"{whole.tasks[0].top1:.2f}" in text
        assert shown.bars.tasks[0].percentage == pytest.approx(100 * (1 + 0.375) / 3, abs=0.1)
        assert shown.bars.tasks[1].percentage == pytest.approx(37.5, abs=0.1)
        shown.learnt(whole)
        assert f"{whole.tasks[2].top1:.2f}" in _drawn(shown, screen)


def test_a_first_task_of_more_epochs_is_more_of_the_stream(whole: Record, screen: io.StringIO) -> None:
    training = whole.config["training"] | {"epochs": 6, "later_epochs": 2}
    config = whole.config | {"training": training}
    with bars.Bars() as shown:
        shown.started(whole.model_copy(update={"config": config, "tasks": whole.tasks[:1], "summary": None}))
        shown.pace(2, Pace("main", 1, 2, 0, 2, 100))
        assert shown.bars.tasks[0].percentage == pytest.approx(100 * (6 + 1) / (6 + 2 + 2), abs=0.1)


def test_bars_of_several_runs(whole: Record, screen: io.StringIO) -> None:
    with comparison.Board(["one", "two"]) as shown:
        shown.started(whole)
        assert shown.bars.tasks[0].percentage == pytest.approx(50)
        assert "one" in _drawn(shown, screen)
        shown.finished({"main": whole})
        shown.started(whole.model_copy(update={"tasks": [], "summary": None}))
        text = _drawn(shown, screen)
        assert shown.bars.tasks[0].percentage == pytest.approx(50)
        assert "one" in text
        assert "two" in text


def test_bars_of_a_task_with_several_phases(whole: Record, screen: io.StringIO) -> None:
    with bars.Bars() as shown:
        shown.started(whole.model_copy(update={"tasks": whole.tasks[:1], "summary": None}))
        shown.pace(2, Pace("balanced", 1, 4, 1, 2, 100, part=1, parts=2))
        assert "going on in task 2, balanced, epoch 2/4" in screen.getvalue()
        assert "balanced, epoch 2/4" in _drawn(shown, screen)
        assert shown.bars.tasks[1].percentage == pytest.approx(50 + 37.5 / 2, abs=0.1)


@pytest.fixture
def small_demo(patterns: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small: dict[str, Any] = {"dataset": str(patterns), "tasks": 3, "epochs": 1, "batch": 4, "threads": 1}
    monkeypatch.setattr(demo, "SETTINGS", small | {"backbone": f"{tiny_runs.__file__}:backbone"})


@pytest.mark.slow
@pytest.mark.usefixtures("small_demo")
def test_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--out", str(tmp_path)]) == 0
    first = capsys.readouterr().out
    records = [read_record(tmp_path / method) for method in demo.METHODS]
    for name in ("accuracy.png", "confusion.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    for sentence in comparison.findings(records):
        assert sentence in first
    assert main(["demo", "--out", str(tmp_path)]) == 0
    assert [read_record(tmp_path / method) for method in demo.METHODS] == records


def _made(record: Record, method: str, top1: float, newest: int) -> Record:
    """A record of a method with this accuracy throughout, and so many of 100 predictions on the newest task."""
    task = record.tasks[-1].model_copy(update={"top1": top1, "confusion": [[50 - newest // 2, newest // 2]] * 2})
    tasks = [task.model_copy(update={"task": number}) for number in (1, 2)]
    return record.model_copy(update={"config": {**record.config, "method": method}, "tasks": tasks, "summary": None})


def test_the_findings_follow_the_numbers(whole: Record) -> None:
    ft, better, worse = (_made(whole, *values) for values in (("ft", 30, 80), ("mine", 40, 60), ("mine", 20, 90)))
    assert comparison.findings([ft, better]) == [
        "Accuracy: ft 30.0 % on average and 30.0 % at the end; mine 40.0 % on average and 40.0 % at the end.",
        "At the end 80 % of ft's predictions and 60 % of mine's fall on the newest task, "
        "where 50 % of the images belong.",
        "mine leans less to the newest task than ft, and is the most accurate on average.",
    ]
    assert comparison.findings([ft, worse])[-1] == (
        "mine does not show here what it is made for: it leans to the newest task no less than ft, "
        "and it is not the most accurate on average."
    )


def test_eighty_columns_hide_no_run(whole: Record) -> None:
    drawn = io.StringIO()
    Console(file=drawn, width=80).print(headlines({"runs/a": whole, "runs/some-longer-name": whole}))
    assert "runs/a" in drawn.getvalue()
    assert max(map(len, drawn.getvalue().splitlines())) <= 80


def test_the_title_says_what_the_numbers_are_of() -> None:
    record = read_record(Path(__file__).parents[2] / "docs" / "results" / "glyphs-10" / "ssil-0")
    assert title(record) == "ssil on glyphs (synthetic): 50 classes in 10 tasks, 100 exemplars, seed 0"
    some = record.model_copy(update={"task_sizes": [5, 5], "config": record.config | {"validation": 0.2}})
    assert "10 of 50 classes in 2 tasks" in title(some)
    assert title(some).endswith("tested on 20 % of the training images")
