"""A finished run that the tests of displays share."""

from pathlib import Path

import pytest

import tiny_runs
from ssil.benchmark.record import Record
from ssil.benchmark.runner import run


@pytest.fixture(scope="session")
def patterns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("cli") / "patterns.npz", [5] * 6)


@pytest.fixture(scope="session")
def finished_record(patterns: Path) -> Record:
    """The record of a finished run."""
    return run(tiny_runs.config(patterns, tasks=3))
