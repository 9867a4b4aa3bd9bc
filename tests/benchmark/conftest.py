"""A small data set and a finished run, shared by the tests of this folder."""

from pathlib import Path

import pytest

import tiny_runs
from ssil.benchmark.record import Record
from ssil.benchmark.runner import run


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("runs") / "patterns.npz", [5] * 6)


@pytest.fixture(scope="session")
def finished(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Record]:
    """The directory and the record of a run of three tasks."""
    out = tmp_path_factory.mktemp("finished")
    return out, run(tiny_runs.config(dataset, tasks=3, epochs=2, memory=8, out=out))
