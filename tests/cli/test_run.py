"""`ssil run`: plain lines, JSON lines, interrupts."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tiny_runs
from ssil.benchmark.record import read_record
from ssil.cli import main, progress
from ssil.cli.run_display import RunProgress
from ssil.learning.task import ProgressReport


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """A run of three tasks that takes no time."""
    return tiny_runs.command(tmp_path, "ft")


@pytest.fixture
def finished(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The directory of a finished run."""
    assert main([*command, "--out", str(tmp_path / "finished")]) == 0
    capsys.readouterr()
    return tmp_path / "finished"


def test_lines(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--out", str(tmp_path / "a")]) == 0
    lines = capsys.readouterr().out.splitlines()
    record = read_record(tmp_path / "a")
    assert lines[0].endswith("6 classes in 3 tasks, 8 exemplars, seed 0")
    for line, task in zip(lines[1:4], record.tasks, strict=True):
        assert line.startswith(f"task {task.task}/3, {task.classes_seen} classes: top-1 {task.top1:.2f}")
    assert lines[-1] == f"finished; kept in {tmp_path / 'a'} (see: ssil show {tmp_path / 'a'})"


def test_settings_of_training_without_effect_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for method, expected in (("ncm", True), ("ft", False)):
        assert main(tiny_runs.command(tmp_path, method)) == 0
        assert ("epochs" in capsys.readouterr().err) == expected


def test_an_epoch_gets_a_line_when_it_is_time(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    assert main(command) == 0
    assert "task 1/3, epoch 1/2: " in capsys.readouterr().out


def test_a_finished_run_is_only_shown(finished: Path, command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    before = read_record(finished)
    assert main([*command, "--out", str(finished)]) == 0
    assert "finished" in capsys.readouterr().out
    assert read_record(finished) == before


def test_json(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again = []
    for _ in range(2):
        assert main([*command, "--json", "--out", str(tmp_path / "a")]) == 0
        again.append([json.loads(line) for line in capsys.readouterr().out.splitlines()])
    assert again[0] == again[1]
    *tasks, summary = again[0]
    record = read_record(tmp_path / "a")
    assert record.summary is not None
    assert tasks == [{"event": "task", **task.model_dump(mode="json")} for task in record.tasks]
    assert summary == {"event": "summary", "out": str(tmp_path / "a"), **record.summary.model_dump()}


def test_digits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quick = ["--backbone", "resnet14", "--epochs", "1", "--train-per-class", "4", "--test-per-class", "4"]
    assert main(["run", "--dataset", "digits", "--tasks", "2", *quick, "--json", "--out", str(tmp_path)]) == 0
    assert [json.loads(line).get("classes_seen") for line in capsys.readouterr().out.splitlines()] == [5, 10, None]


def test_a_directory_of_another_run_is_refused(
    finished: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("*") if path.name != "lock"}
    assert main([*command, "--seed", "1", "--out", str(finished)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: out: {finished} holds a run with other settings (")
    assert "seed: 0 there, 1 here" in said
    assert said.count("\n") == 1
    assert {path: path.stat().st_mtime_ns for path in finished.rglob("*") if path.name != "lock"} == before


def _interrupt_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Press Ctrl-C at this step, where ends of epochs count as steps."""
    reports, original = [], RunProgress.progress

    def progress(self: RunProgress, task: int, report: ProgressReport) -> None:
        original(self, task, report)
        reports.append(report)
        if len(reports) == step:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(RunProgress, "progress", progress)


@pytest.mark.parametrize(("step", "task"), [(2, 1), (8, 2)])
def test_interrupted_and_gone_on(
    step: int,
    task: int,
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = [*command, "--out", str(tmp_path / "a")]
    monkeypatch.setattr(sys, "argv", ["ssil", *command])
    with monkeypatch.context() as patch:
        _interrupt_at(step, patch)
        assert main(command) == 130
    first, last = capsys.readouterr().err.splitlines()
    assert first == "stopping after the next step; Ctrl-C again stops at once"
    assert last.startswith(
        f"interrupted: the last checkpoint is kept in {tmp_path / 'a'}; go on with: ssil run --dataset"
    )
    assert main(command) == 0
    assert f"\ngoing on in task {task}, epoch " in capsys.readouterr().out
    assert read_record(tmp_path / "a").summary is not None


def test_without_a_directory_nothing_is_kept(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _interrupt_at(3, monkeypatch)
    assert main(command) == 130
    assert capsys.readouterr().err.endswith("interrupted: without --out nothing is kept\n")


def test_interrupted_before_the_start(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ssil.cli.run_display.run", lambda *_: signal.raise_signal(signal.SIGINT))
    assert main([*command, "--out", str(tmp_path / "a")]) == 130
    assert capsys.readouterr().err == "interrupted: nothing had been done yet\n"


@pytest.mark.slow
def test_a_process_is_interrupted(command: list[str], tmp_path: Path) -> None:
    words = [*command, "--out", str(tmp_path / "a")]
    words[words.index("--epochs") + 1] = "100000"
    process = subprocess.Popen(
        [sys.executable, "-m", "ssil", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "interrupted: the last checkpoint is kept in " in error
    assert (tmp_path / "a" / "checkpoint" / "state.json").exists()


def test_show_a_run_that_has_just_begun(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _interrupt_at(2, monkeypatch)
    main([*command, "--out", str(tmp_path / "a")])
    assert main(["show", str(tmp_path / "a")]) == 0
    assert "0/3" in capsys.readouterr().out
    assert main(["show", str(tmp_path / "a"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["finished"] is False
