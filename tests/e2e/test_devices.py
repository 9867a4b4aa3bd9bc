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


VIEWS = """
import numpy as np


def noise(image, random):
    return image + random.integers(0, 40, image.shape, dtype=np.uint8)
"""


def trained(out: Path, devices: int, *flags: str) -> Record:
    where = ["--devices", str(devices), "--out", str(out), *flags]
    command = [sys.executable, "-m", "ssil", "run", *FLAGS.split(), *where]
    subprocess.run(command, check=True, capture_output=True, timeout=200)
    return read_record(out)


@pytest.mark.slow
@pytest.mark.parametrize("flags", [[], ["--augment", "views.py:noise"]], ids=["usual views", "views of one's own"])
def test_two_processes_do_what_one_does(tmp_path: Path, flags: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "views.py").write_text(VIEWS)
    monkeypatch.chdir(tmp_path)
    one, two = trained(tmp_path / "one", 1, *flags), trained(tmp_path / "two", 2, *flags)
    assert two.provenance["devices"] == 2
    for alone, shared in zip(one.tasks, two.tasks, strict=True):
        assert shared.confusion == alone.confusion
        for part, losses in alone.loss["main"].items():
            assert shared.loss["main"][part] == pytest.approx(losses, rel=1e-9)
