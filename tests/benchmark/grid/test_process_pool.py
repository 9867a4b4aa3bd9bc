"""Runs in processes of their own: all are done, what is done is not done again, one that fails stops no other."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tiny_runs
from ssil.benchmark.grid import process_pool
from ssil.benchmark.grid.cells import Cell, finished_record
from ssil.benchmark.grid.process_pool import GridObserver, Outcome, run_cells
from ssil.benchmark.record import read_record
from ssil.cli import main

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("grid") / "patterns.npz", (6, 6, 6, 6))


def cell(dataset: Path, row: str, seed: int = 0, **settings: Any) -> Cell:
    backbone = f"{Path(tiny_runs.__file__)}:backbone"
    usual = {
        "dataset": str(dataset),
        "backbone": backbone,
        "epochs": 1,
        "batch": 4,
        "tasks": 2,
        "memory": 4,
        "threads": 1,
    }
    return Cell("some", row, seed, {**usual, "method": row, **settings})


class Heard(GridObserver):
    def __init__(self) -> None:
        self.events: list[str] = []

    def started(self, cell: Cell) -> None:
        self.events.append(f"begin {cell.row}")

    def learnt(self, cell: Cell, task: dict[str, Any]) -> None:
        self.events.append(f"{cell.row} task {task['task']}")

    def ended(self, outcome: Outcome) -> None:
        self.events.append(f"end {outcome.cell.row} {outcome.code}")


def test_one_that_fails_stops_no_other(dataset: Path, tmp_path: Path) -> None:
    heard, cells = Heard(), [cell(dataset, "ssil", memory=2), cell(dataset, "ft")]
    outcomes = {outcome.cell.row: outcome for outcome in run_cells(cells, tmp_path, 1, heard)}
    assert heard.events == ["begin ssil", "end ssil 2", "begin ft", "ft task 1", "ft task 2", "end ft 0"]
    assert outcomes["ssil"].reason.startswith("memory: 2 is less than one exemplar")
    assert finished_record(cells[0], tmp_path) is None
    assert finished_record(cells[1], tmp_path) == read_record(tmp_path / "some/ft-0")


LOUD = """
from ssil.learning.method import Method
from ssil.methods.ft import ft
from ssil.learning.registry import register
from ssil.learning.schedule import Training

print("a method of one's own may say something")
print(1)


@register()
def loud(training: Training) -> Method:
    '''FT, which speaks.'''
    return ft(training)
"""


def test_a_run_may_print_and_may_be_started_by_somebodys_part(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loud.py").write_text(LOUD)
    monkeypatch.setenv("SLURM_PROCID", "1")
    monkeypatch.setenv("SLURM_NTASKS", "2")
    heard = Heard()
    (outcome,) = run_cells([cell(dataset, "mine", method=f"{tmp_path / 'loud.py'}:loud")], tmp_path / "out", 1, heard)
    assert not outcome.code, outcome.reason
    assert heard.events == ["begin mine", "mine task 1", "mine task 2", "end mine 0"]


OTHERS: tuple[dict[str, Any], ...] = (
    {"epochs": 2},
    {"memory": 8},
    {"memory_per_class": 2},
    {"large_base": True},
    {"class_order": 5},
    {"least": 0.5},
)


@pytest.fixture(scope="module")
def done(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("done")
    cells = [cell(dataset, "ft"), cell(dataset, "er", memory=None, **OTHERS[2], **OTHERS[4], **OTHERS[5])]
    assert {outcome.code for outcome in run_cells(cells, root, 2)} == {0}
    assert all(finished_record(one, root) for one in cells)
    return root


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: next(iter(other)))
def test_a_run_with_other_settings_is_not_done(done: Path, dataset: Path, other: dict[str, Any]) -> None:
    memory: dict[str, Any] = {"memory": None} if "memory_per_class" in other else {}
    assert not finished_record(cell(dataset, "ft", **memory, **other), done)


@pytest.mark.parametrize("gone", ["memory_per_class", "class_order", "least"])
def test_nor_is_one_with_a_setting_that_is_gone(done: Path, dataset: Path, gone: str) -> None:
    settings: dict[str, Any] = {"memory": None, **OTHERS[2], **OTHERS[4], **OTHERS[5], gone: None}
    assert not finished_record(cell(dataset, "er", **settings), done)


def test_nor_is_one_whose_record_cannot_be_read(dataset: Path, tmp_path: Path) -> None:
    place = tmp_path / "some/ft-0"
    place.mkdir(parents=True)
    (place / "record.json").write_text("{")
    assert not finished_record(cell(dataset, "ft"), tmp_path)


def test_a_grid_goes_on_where_it_stopped(dataset: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    settings = "\n".join(f"{key} = {value!r}" for key, value in cell(dataset, "ft").settings.items() if key != "method")
    (tmp_path / "mine.toml").write_text(f"seeds = [0, 1]\n[settings]\n{settings}\n[methods.ft]\n")
    command = ["grid", str(tmp_path / "mine.toml"), "--out", str(tmp_path / "out")]
    assert main([*command, "--dry-run"]) == 0
    assert re.search(r"0 of 2 runs are done; the others: about [\d.]+ s, 1 at once", capfd.readouterr().out)
    assert not (tmp_path / "out").exists()
    assert main([*command, "--dry-run", "--threads", "3"]) == 0
    assert len(re.findall(r"^ssil run .* --threads 3 ", capfd.readouterr().out, re.MULTILINE)) == 2
    assert main([*command, "--part", "2/2"]) == 0
    assert not (tmp_path / "out/ft-0").exists()
    assert main([*command, "--dry-run"]) == 0
    said = capfd.readouterr().out
    assert "1 of 2 runs are done; the others: about" in said
    assert main([*command, "--jobs", "2"]) == 0
    said = capfd.readouterr().out
    assert "ft-0: begins" in said
    assert "ft-1: begins" not in said
    assert main([*command, "--part", "3/2"]) == 2
    assert "part: '3/2' is not a part" in capfd.readouterr().err


@pytest.mark.parametrize(("jobs", "threads"), [(1, 5), (2, 2), (9, 1)])
def test_runs_share_the_usable_cores(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int, threads: int
) -> None:
    monkeypatch.setattr(process_pool, "usable_cores", lambda: 5)
    learnt = cell(dataset, "ft")
    shared = replace(learnt, settings={key: value for key, value in learnt.settings.items() if key != "threads"})
    run_cells([shared], tmp_path, jobs)
    assert read_record(tmp_path / "some/ft-0").provenance["threads"] == threads


def test_a_failure_is_the_exit_code(dataset: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.toml").write_text('settings = { dataset = "nowhere.npz" }\n[methods.ft]\n')
    with pytest.raises(SystemExit, match="1"):
        main(["grid", str(tmp_path / "bad.toml"), "--out", str(tmp_path / "out")])
    assert "failed: ft-0: " in capfd.readouterr().err
