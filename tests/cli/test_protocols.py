"""`ssil protocols`, and `ssil run --protocol`."""

import json
from pathlib import Path

import pytest

from ssil.benchmark.config import RunConfig
from ssil.benchmark.grid.cells import Cell
from ssil.cli import app, main
from ssil.reproduction.field_protocols import PROTOCOLS


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch) -> list[RunConfig]:
    """The configurations that commands would have run."""
    seen: list[RunConfig] = []
    monkeypatch.setattr("ssil.cli.run_display.run_and_show", lambda config, json: seen.append(config))
    return seen


def test_protocols(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["protocols"]) == 0
    shown = capsys.readouterr().out
    row = next(line.split() for line in shown.splitlines() if line.startswith("wa "))
    assert row == ["wa", "survey,", "notes", "64", "to", "67.5", "67.1", "52.3"]
    assert "survey: arXiv 2302.03648" in shown
    assert main(["protocols", "--json"]) == 0
    entries = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [entry["name"] for entry in entries] == [*PROTOCOLS]
    assert all(band["source"] for entry in entries for band in entry["published"])


def test_a_run_by_a_protocol(resolved: list[RunConfig], capsys: pytest.CaptureFixture[str]) -> None:
    app(["run", "--protocol", "cifar100-b0-10", "--method", "icarl"])
    config = resolved[0]
    assert (config.dataset, config.tasks, config.class_order) == ("cifar100", 10, "numpy:1993")
    assert (config.epochs, config.later_epochs, config.later_milestones) == (200, 170, (80, 120))
    assert capsys.readouterr().err == "protocol cifar100-b0-10\n"


def test_the_users_flags_win_and_the_output_says_so(
    resolved: list[RunConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    app(
        [
            "run",
            "--protocol",
            "cifar100-b0-10",
            "--epoch-scale",
            "0.1",
            "--memory",
            "500",
            "--tasks",
            "5",
            "--classes",
            "9",
        ]
    )
    config = resolved[0]
    assert (config.epochs, config.later_epochs, config.epoch_scale) == (20, 17, None)
    assert (config.milestones, config.later_milestones) == ((6, 12, 17), (8, 12))
    assert (config.memory, config.tasks) == (500, 5)
    said = capsys.readouterr().err
    assert "20 of 200 epochs, 17 of 170 in tasks after the first" in said
    assert "memory 500 (protocol: 2000)" in said
    assert "tasks 5 (protocol: 10)" in said
    assert "classes 9 (protocol: None)" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--protocol", "cifar100-b0-11"], "protocol: 'cifar100-b0-11' is not known; did you mean"),
        (["--protocol", "cifar100-b0-5", "--scenario", "2"], "give --protocol or --scenario, not both"),
        (["--protocol", "cifar100-b0-5", "--epoch-scale", "x"], "epoch_scale: 'x' does not fit"),
        (["--protocol", "cifar100-b0-5", "--epochs", "0"], "epochs: '0' does not fit"),
        (["--protocol", "cifar100-b0-5", "--epochs", "9", "--epoch-scale", "2"], "epoch_scale: give --epoch-scale"),
        (["--protocol", "cifar100-b0-5", "--later-epochs", "x"], "later_epochs: 'x' does not fit"),
    ],
)
def test_what_does_not_fit_is_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_a_file_of_settings_may_name_a_protocol(
    tmp_path: Path, resolved: list[RunConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.toml").write_text('protocol = "cifar100-b0-10"\nmethod = "wa"\nepochs = 20\n')
    app(["run", str(tmp_path / "mine.toml"), "--memory", "500"])
    config = resolved[0]
    assert (config.epochs, config.later_epochs, config.memory, config.method) == (20, 17, 500, "wa")
    assert capsys.readouterr().err.startswith("protocol cifar100-b0-10, changed, so it can't be compared")
    app(["run", str(tmp_path / "mine.toml"), "--protocol", "cifar100-b0-5"])
    assert resolved[1].tasks == 20


def test_a_grid_may_name_protocols(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in the table of one scenario; a method's own schedule is the protocol's."""
    (tmp_path / "grid.toml").write_text(
        """
settings = { epoch_scale = 0.1 }
[scenarios.ten]
protocol = "cifar100-b0-10"
[scenarios.twenty]
protocol = "cifar100-b0-5"
memory = 500
[methods.podnet]
[methods.mine]
method = "wa"
"""
    )
    cells: list[Cell] = []
    monkeypatch.setattr("ssil.cli.grid_display.run_missing", lambda found, *_: cells.extend(found))
    assert main(["grid", str(tmp_path / "grid.toml"), "--dry-run", "--out", str(tmp_path / "runs")]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "protocol cifar100-b0-10, changed, so it can't be compared with published accuracies: 16 of 160 epochs, 16 of "
        "160 in tasks after the first",
        "protocol cifar100-b0-5, changed, so it can't be compared with published accuracies: 16 of 160 epochs, 16 of "
        "160 in tasks after the first; memory 500 (protocol: 2000)",
        "protocol cifar100-b0-10, changed, so it can't be compared with published accuracies: 20 of 200 epochs, 17 of "
        "170 in tasks after the first",
        "protocol cifar100-b0-5, changed, so it can't be compared with published accuracies: 20 of 200 epochs, 17 of "
        "170 in tasks after the first; memory 500 (protocol: 2000)",
    ]
    assert [str(cell.folder) for cell in cells] == ["ten/podnet-0", "twenty/podnet-0", "ten/mine-0", "twenty/mine-0"]
    configs = [cell.config for cell in cells]
    assert [(one.tasks, one.memory, one.epochs) for one in configs] == [
        (10, 2000, 16), (20, 500, 16), (10, 2000, 20), (20, 500, 20)
    ]  # fmt: skip
    assert {one.class_order for one in configs} == {"numpy:1993"}


def test_an_unknown_protocol_in_a_grid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "grid.toml").write_text('settings = { protocol = "cifar100-b0-11" }\n[methods.ft]\n')
    assert main(["grid", str(tmp_path / "grid.toml"), "--dry-run"]) == 2
    assert capsys.readouterr().err.startswith("error: protocol: 'cifar100-b0-11' is not known; did you mean")
