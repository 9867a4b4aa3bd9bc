"""`ssil demo`."""

from pathlib import Path
from typing import Any

import pytest

import tiny_runs
from ssil.benchmark.record import Record, read_record
from ssil.cli import demo, main


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
    for sentence in demo.findings(records):
        assert sentence in first
    assert main(["demo", "--out", str(tmp_path)]) == 0
    assert [read_record(tmp_path / method) for method in demo.METHODS] == records


def _record(record: Record, method: str, top1: float, newest: int) -> Record:
    """A record with this accuracy after each task, and `newest` % of the predictions on the newest task."""
    task = record.tasks[-1].model_copy(update={"top1": top1, "confusion": [[50 - newest // 2, newest // 2]] * 2})
    tasks = [task.model_copy(update={"task": number}) for number in (1, 2)]
    return record.model_copy(update={"config": {**record.config, "method": method}, "tasks": tasks, "summary": None})


def test_the_findings_follow_the_numbers(finished_record: Record) -> None:
    ft, better, worse = (
        _record(finished_record, *values) for values in (("ft", 30, 80), ("mine", 40, 60), ("mine", 20, 90))
    )
    assert demo.findings([ft, better]) == [
        "Accuracy: ft 30.0 % on average and 30.0 % at the end; mine 40.0 % on average and 40.0 % at the end.",
        "At the end 80 % of ft's predictions and 60 % of mine's fall on the newest task, "
        "where 50 % of the images belong.",
        "mine is less biased to the newest task than ft, and the most accurate on average.",
    ]
    assert demo.findings([ft, worse])[-1] == (
        "mine does not show its usual advantage here: it is biased to the newest task no less than ft, "
        "and it is not the most accurate on average."
    )
