"""What ends one process ends the others, with one line that says why."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tiny_runs

pytestmark = pytest.mark.slow

METHOD = """
import os

from ssil.core.errors import UserError
from ssil.learning.registry import register
from ssil.learning.batches import Mixed
from ssil.learning.method import Method, Phase, cross_entropy
from ssil.nn.heads import LinearHead


@register()
def odd(training, *, rank: int = 0, error: str = "UserError", step: int = 3):
    '''Fails in one of the processes.'''
    steps = []

    def loss(batch):
        steps.append(1)
        if len(steps) == step and int(os.environ.get("LOCAL_RANK", "0")) == rank:
            raise {"UserError": UserError, "ValueError": ValueError}[error]("images: one is odd; mend it")
        return cross_entropy(batch)

    return Method(lambda c: (Phase("main", loss, Mixed(training.batch), training.schedule(c.task)),), LinearHead)
"""


def run(folder: Path, *flags: str) -> "subprocess.CompletedProcess[str]":
    """Two processes on two tasks, by the command line."""
    (folder / "odd.py").write_text(METHOD)
    dataset = tiny_runs.patterns(folder / "patterns.npz", [6] * 4)
    usual = f"--dataset {dataset} --tasks 2 --backbone {tiny_runs.__file__}:backbone --epochs 3 --device cpu"
    return subprocess.run(
        [sys.executable, "-m", "ssil", "run", *usual.split(), "--devices", "2", "--threads", "1", *flags],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=200,
    )


def errors(done: "subprocess.CompletedProcess[str]") -> list[str]:
    return [line for line in done.stderr.splitlines() if line.startswith("error: ")]


@pytest.mark.parametrize(("rank", "says"), [(0, ""), (1, "process 1: ")])
def test_an_error_in_one_process_ends_both_and_is_said_once(rank: int, says: str, tmp_path: Path) -> None:
    done = run(tmp_path, "--method", f"{tmp_path}/odd.py:odd", "--option", f"rank={rank}")
    assert done.returncode == 2, done.stderr
    assert errors(done) == [f"error: {says}images: one is odd; mend it"]


def test_what_nobody_foresaw_is_traced_where_it_happened(tmp_path: Path) -> None:
    flags = ("--option", "rank=1", "--option", "error=ValueError")
    done = run(tmp_path, "--method", f"{tmp_path}/odd.py:odd", *flags)
    assert done.returncode == 2
    assert errors(done) == ["error: process 1: images: one is odd; mend it"]
    assert "ValueError: images: one is odd" in done.stderr


def test_what_is_refused_at_once_is_refused_once(tmp_path: Path) -> None:
    """By the process that the command is, before it starts the others."""
    done = run(tmp_path, "--memory", "2")
    assert (done.returncode, len(errors(done))) == (2, 1)
    assert errors(done)[0].startswith("error: memory: ")


def test_a_batch_too_small_for_all_is_refused_once(tmp_path: Path) -> None:
    done = run(tmp_path, "--batch", "1", "--method", "ft")
    assert done.returncode == 2
    assert len(errors(done)) == 1
    assert errors(done)[0].endswith("give the task more images, or fewer --devices")
