"""Exemplars that fit beside the model into a number of megabytes, counted by hand."""

from pathlib import Path
from typing import Any

import pytest
import torch

import tiny_runs
from ssil.benchmark.record import read_record
from ssil.benchmark.runner import run
from ssil.core.errors import UserError
from ssil.testing.small_stream import StopAfterTask

IMAGE = 8 * 8 * 1
"""The bytes of a grey image of 8 x 8 pixels."""
MEGABYTE = 1_048_576
SETTINGS: dict[str, Any] = {"tasks": 2, "norm": "group"}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("megabytes") / "patterns.npz", [40] * 4)


def network_bytes(out: Path) -> int:
    """The bytes of all weights and buffers in the last checkpoint."""
    return sum(tensor.nbytes for name, tensor in tiny_runs.tensors(out).items() if name.startswith("snapshot/"))


def test_as_many_exemplars_as_fit_beside_the_model(dataset: Path, tmp_path: Path) -> None:
    model = network_bytes(_done(dataset, tmp_path / "sized", memory=8))
    wanted = (model + 70 * IMAGE + IMAGE // 2) / MEGABYTE  # 70 exemplars and half of one
    out = _done(dataset, tmp_path / "run", memory_mb=wanted)
    record = read_record(out)
    assert network_bytes(out) == model
    assert record.tasks[-1].memory_counts == [18, 18, 17, 17]
    assert record.tasks[-1].kept_bytes == model + 70 * IMAGE
    first = record.tasks[0]
    assert first.kept_bytes is not None
    assert sum(first.memory_counts) == 72  # the head has two rows of 17 numbers less, which are 136 bytes
    assert first.kept_bytes <= wanted * MEGABYTE
    assert record.config["memory"] == {"kind": "megabytes", "megabytes": wanted}


def test_what_is_stored_with_exemplars_counts_too(dataset: Path, tmp_path: Path) -> None:
    """An exemplar of DER++ takes four logits of four bytes more."""
    model = network_bytes(_done(dataset, tmp_path / "sized", memory=8))
    wanted = (model + 70 * IMAGE) / MEGABYTE
    last = read_record(_done(dataset, tmp_path / "run", memory_mb=wanted, method="derpp")).tasks[-1]
    assert sum(last.memory_counts) == 70 * IMAGE // (IMAGE + 16) == 56
    assert (last.exemplar_bytes, last.stored_bytes) == (56 * IMAGE, 56 * 16)


def test_a_run_in_megabytes_goes_on_where_it_stopped(dataset: Path, tmp_path: Path) -> None:
    whole = _done(dataset, tmp_path / "whole", memory_mb=0.1)
    stopped = tiny_runs.config(dataset, **SETTINGS, memory_mb=0.1, out=tmp_path / "stopped")
    with pytest.raises(KeyboardInterrupt):
        run(stopped, StopAfterTask())
    run(stopped)
    for name, tensor in tiny_runs.tensors(whole).items():
        assert torch.equal(tiny_runs.tensors(tmp_path / "stopped")[name], tensor)


def test_too_few_megabytes_are_refused_before_training(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^memory_mb: 0.01 is too little for 4 classes: beside a model of .* 0 exemp"):
        run(tiny_runs.config(dataset, **SETTINGS, memory_mb=0.01, out=tmp_path / "run"))


def test_one_budget_alone(dataset: Path) -> None:
    with pytest.raises(UserError, match=r"^memory: give --memory"):
        tiny_runs.config(dataset, memory_mb=1.0, memory=20)


def _done(dataset: Path, out: Path, **settings: Any) -> Path:
    run(tiny_runs.config(dataset, **SETTINGS, out=out, **settings))
    return out
