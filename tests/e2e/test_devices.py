"""Two processes share each batch and compute what one does."""

import subprocess
import sys
from pathlib import Path

import pytest

from ssil.benchmark.record import Record, read_record

FLAGS = (
    "--dataset digits --train-per-class 12 --test-per-class 10 --tasks 2 --memory 20 --backbone resnet14 --epochs 1 "
    "--batch 10 --method ssil --norm group --precision 64-true --device cpu --threads 1 --selection herding"
)


def trained(out: Path, devices: int) -> Record:
    command = [sys.executable, "-m", "ssil", "run", *FLAGS.split(), "--devices", str(devices), "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True, timeout=200)
    return read_record(out)


@pytest.mark.slow
def test_two_processes_do_what_one_does(tmp_path: Path) -> None:
    one, two = trained(tmp_path / "one", 1), trained(tmp_path / "two", 2)
    assert two.provenance["devices"] == 2
    for alone, shared in zip(one.tasks, two.tasks, strict=True):
        assert shared.confusion == alone.confusion
        for part, losses in alone.loss["main"].items():
            assert shared.loss["main"][part] == pytest.approx(losses, rel=1e-9)
