"""Two processes share each batch and do what one does, to the last digits: every method, every phase."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import run_pair
import tiny_runs
from followed_methods import IMAGES, SETTINGS
from run_pair import Evaluations
from ssil.benchmark.record import Record, read_predictions, read_record
from ssil.benchmark.runner import run
from ssil.learning.execution import ExecutionContext
from ssil.learning.registry import recipes

pytestmark = pytest.mark.slow

STEPS = 20
LATER = dict.fromkeys(("balanced_epochs", "bias_epochs", "tuning_epochs", "compression_epochs"), STEPS)
"""The options that say how long the phases after the main one are."""
EXACT = {"norm": "group", "precision": "64-true", "selection": "herding"}


def settings(method: str) -> dict[str, Any]:
    """One step an epoch, so that the record has the loss of each step; shares of odd batches differ in size."""
    options = {name: value for name, value in LATER.items() if name in recipes()[method].options}
    length = {"batch": 64, "epochs": 2, "later_epochs": STEPS}
    return SETTINGS | EXACT | length | {"method": method, "options": options, "milestones": ()}


def in_two(dataset: Path, folder: Path, runs: dict[str, Any]) -> "subprocess.CompletedProcess[str]":
    """The runs, by one pair of processes."""
    return subprocess.run(
        [sys.executable, str(run_pair.__file__), dataset, folder, json.dumps(runs)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=1200,
    )


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("pair") / "patterns.npz", IMAGES)


@pytest.fixture(scope="module")
def pairs(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what two processes have made by each method."""
    folder = tmp_path_factory.mktemp("pairs")
    runs = {method: settings(method) for method in recipes()}
    done = in_two(dataset, folder, runs | {"uw in parts": runs["uw"] | {"accumulate": 3}})
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module", params=recipes())
def both(request: pytest.FixtureRequest, dataset: Path, pairs: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The directories of one process and of two."""
    alone, evaluations = tmp_path_factory.mktemp("alone") / request.param, Evaluations()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExecutionContext, "batched_outputs", evaluations.as_method())
        run(tiny_runs.config(dataset, **settings(request.param), out=alone))
    alone.with_name(f"{alone.name}-0").write_text(json.dumps(evaluations))
    return alone, pairs / request.param


def records(both: tuple[Path, Path]) -> tuple[Record, Record]:
    alone, pair = map(read_record, both)
    assert (alone.provenance["devices"], pair.provenance["devices"]) == (1, 2)
    return alone, pair


def test_every_step_has_the_same_loss(both: tuple[Path, Path]) -> None:
    for alone, pair in zip(*(record.tasks for record in records(both)), strict=True):
        assert alone.loss.keys() == pair.loss.keys()
        for phase, parts in alone.loss.items():
            assert parts.keys() == pair.loss[phase].keys()
            for part, losses in parts.items():
                assert pair.loss[phase][part] == pytest.approx(losses, rel=0, abs=1e-9)
                assert len(losses) >= (0.8 * STEPS if alone.task > 1 else 2)


def test_the_exemplars_are_the_same(both: tuple[Path, Path]) -> None:
    alone, pair = map(tiny_runs.tensors, both)
    assert torch.equal(alone["memory/indices"], pair["memory/indices"])
    assert [task.memory_counts for task in records(both)[0].tasks] == [
        task.memory_counts for task in records(both)[1].tasks
    ]


def test_what_is_left_is_the_same(both: tuple[Path, Path]) -> None:
    """Weights, and what is known only at a task's end: class means, corrections, statistics, stored values."""
    alone, pair = map(tiny_runs.tensors, both)
    assert alone.keys() == pair.keys()
    for name, tensor in alone.items():  # NaN stands for classes that came after a value was stored
        torch.testing.assert_close(pair[name], tensor, rtol=0, atol=1e-8, equal_nan="stored" in name, msg=name)


def test_the_predictions_are_the_same(both: tuple[Path, Path]) -> None:
    alone, pair = both
    for task in (1, 2, 3):
        mine, theirs = read_predictions(alone, task), read_predictions(pair, task)
        assert torch.equal(mine.labels, theirs.labels)
        assert torch.equal(mine.top, theirs.top)
        torch.testing.assert_close(mine.confidence, theirs.confidence, rtol=0, atol=1e-8)
    ratios = [[task.teacher_ratio for task in record.tasks] for record in records(both)]
    assert ratios[0] == ratios[1]


def test_shares_in_parts_are_the_same(pairs: Path) -> None:
    """Each process trains on its share in parts."""
    whole, parts = (tiny_runs.tensors(pairs / name) for name in ("uw", "uw in parts"))
    for name, tensor in whole.items():
        torch.testing.assert_close(parts[name], tensor, rtol=0, atol=1e-8, msg=name)


def test_each_process_evaluates_its_share_only(both: tuple[Path, Path]) -> None:
    """For class means, herding, imprinting, corrections and predictions; of an odd number both have the last."""
    alone, pair = both
    whole, first, second = (
        json.loads(run.with_name(f"{run.name}-{rank}").read_text()) for run, rank in ((alone, 0), (pair, 0), (pair, 1))
    )
    assert first == second == [-(-count // 2) for count in whole]


@pytest.mark.parametrize("dying", [[1], [0], [0, 1]])
def test_a_pair_that_is_killed_goes_on_as_one(dying: list[int], dataset: Path, tmp_path: Path) -> None:
    """Whoever dies, the other ends too and says why; the weights are those of a run that nobody killed."""
    stream = SETTINGS | EXACT | {"method": "ssil", "checkpoint_every": "2"}
    ended = in_two(dataset, tmp_path, {"killed": stream | {"dying": dying}})
    assert ended.returncode != 0
    if dying == [1]:
        assert "devices: a process ended without a word" in ended.stderr
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    assert json.loads((killed / "checkpoint" / "state.json").read_text())["progress"]
    run(tiny_runs.config(dataset, **stream, out=whole))
    resumed = run(tiny_runs.config(dataset, **stream, out=killed))
    assert resumed.provenance["resumed"][0]["devices"] == 1
    theirs = tiny_runs.tensors(whole)
    for name, tensor in tiny_runs.tensors(killed).items():
        torch.testing.assert_close(tensor, theirs[name], rtol=0, atol=1e-8, msg=name)
    for task in (1, 2, 3):
        assert torch.equal(read_predictions(killed, task).top, read_predictions(whole, task).top)
