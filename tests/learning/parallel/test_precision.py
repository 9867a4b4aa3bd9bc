"""Half precision: losses are scaled, and a run that was stopped goes on with the scale it had."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import tiny_runs
from followed_methods import SETTINGS
from ssil.benchmark.runner import run

HALF: dict[str, Any] = SETTINGS | {"precision": "16-mixed", "method": "podnet", "checkpoint_every": "2"}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("precision") / "patterns.npz", [5] * 6)


def test_half_precision_learns_and_goes_on_bit_for_bit(dataset: Path, tmp_path: Path) -> None:
    """With a hook that sees gradients, which must not be scaled ones: `clamp` would cut them all."""
    options = {"options": {"clamp": 5.0}}
    whole = run(tiny_runs.config(dataset, **HALF, **options, out=tmp_path / "whole"))
    with pytest.raises(KeyboardInterrupt):
        run(tiny_runs.config(dataset, **HALF, **options, out=tmp_path / "stopped"), tiny_runs.Stopper(9))
    state = json.loads((tmp_path / "stopped" / "checkpoint" / "state.json").read_text())
    assert state["progress"]["scaler"]["scale"] > 0
    resumed = run(tiny_runs.config(dataset, **HALF, **options, out=tmp_path / "stopped"))
    assert tiny_runs.timeless(resumed) == tiny_runs.timeless(whole)
    theirs = tiny_runs.tensors(tmp_path / "whole")
    for name, tensor in tiny_runs.tensors(tmp_path / "stopped").items():
        assert torch.equal(tensor, theirs[name]), name


def test_half_precision_is_near_single_precision(dataset: Path) -> None:
    """Also where a scorer is trained, whose loss is not scaled."""
    settings = HALF | {"method": "bic", "batch": 10}
    half, single = (run(tiny_runs.config(dataset, **settings | {"precision": p})) for p in ("16-mixed", "32-true"))
    for mine, theirs in zip(half.tasks, single.tasks, strict=True):
        for phase, parts in theirs.loss.items():
            for part, values in parts.items():
                assert mine.loss[phase][part][0] == pytest.approx(values[0], rel=0.05, abs=0.02)
