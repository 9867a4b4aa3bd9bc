"""`ssil show`: tables, JSON lines, metrics of the predictions."""

import json
import shutil
from pathlib import Path

import pytest

import tiny_runs
from ssil.benchmark.record import Record, read_predictions
from ssil.benchmark.runner import run
from ssil.cli import main
from ssil.core.classes import ClassTable
from ssil.learning.metrics import backward_transfer, calibration_error, class_top1, interval, newest_share


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Record]:
    """A run of two uneven tasks."""
    folder = tmp_path_factory.mktemp("show")
    data = tiny_runs.patterns(folder / "patterns.npz", [5] * 5)
    return folder / "out", run(tiny_runs.config(data, task_sizes=(3, 2), memory=8, out=folder / "out"))


def _transfer(record: Record) -> float:
    return backward_transfer([task.task_top1 for task in record.tasks])


def test_show(finished: tuple[Path, Record], capsys: pytest.CaptureFixture[str]) -> None:
    out, record = finished
    assert main(["show", str(out), str(out)]) == 0
    shown = capsys.readouterr().out
    assert record.summary is not None
    assert shown.count("predicted task after task 2") == 1
    for value in (record.summary.average_top1, record.summary.forgetting, record.tasks[1].top5):
        assert f"{value:.2f}" in shown


def test_show_json(finished: tuple[Path, Record], capsys: pytest.CaptureFixture[str]) -> None:
    out, record = finished
    assert main(["show", str(out), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["record"] == record.model_dump(mode="json")
    assert shown["newest_share"] == newest_share(record.tasks[-1].confusion)
    assert (shown["finished"], shown["last_top1"]) == (True, record.tasks[-1].top1)


def test_runs_are_named_by_what_differs_in_their_paths(
    finished: tuple[Path, Record], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [tmp_path / "some" / "place" / name for name in ("one", "one/two", "three")]
    for folder in folders:
        folder.mkdir(parents=True)
        shutil.copy(finished[0] / "record.json", folder)
    assert main(["show", str(folders[0]), str(folders[2])]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("run ")) + 2
    assert [row.split()[0] for row in lines[first : first + 3]] == ["one", "one/two", "three"]
    assert lines[-1].startswith("images, steps, seconds")  # the comparison is the last to be printed


def test_metrics(finished: tuple[Path, Record], capsys: pytest.CaptureFixture[str]) -> None:
    out, record = finished
    assert main(["show", str(out), "--metrics"]) == 0
    said = capsys.readouterr().out
    last = read_predictions(out, 2)
    low, high = interval(last)
    assert f"backward transfer {_transfer(record):.2f}\n" in said
    assert f"{low:.2f} to {high:.2f}" in said
    assert f"{calibration_error(last):.2f}" in said
    accuracies = class_top1(last, ClassTable(("?",) * 5, (0, 3, 5)))
    worst = min(zip(accuracies, record.class_names, strict=True))
    assert f"hardest classes: {worst[1]} {worst[0]:.1f} %" in said


def test_metrics_json(finished: tuple[Path, Record], capsys: pytest.CaptureFixture[str]) -> None:
    out, record = finished
    assert main(["show", str(out), "--metrics", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["metrics"]
    assert shown["backward_transfer"] == _transfer(record)
    assert [task["top1"] for task in shown["tasks"]] == [task.top1 for task in record.tasks]
    assert [len(task["class_top1"]) for task in shown["tasks"]] == [3, 5]
    assert shown["tasks"][0]["score_gap"] is None
    assert shown["tasks"][1]["score_gap"] is not None


def test_metrics_without_predictions(
    finished: tuple[Path, Record], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(finished[0] / "record.json", tmp_path)
    assert main(["show", str(tmp_path), "--metrics"]) == 0
    said = capsys.readouterr().out
    assert f"backward transfer {_transfer(finished[1]):.2f}\n" in said
    assert f"no intervals, calibration, scores and classes: task: {tmp_path}/arrays/task-01.safetensors is not" in said
    assert main(["show", str(tmp_path), "--metrics", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"] is None
