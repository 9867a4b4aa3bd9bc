"""The memory of a run does not grow with the number of its tasks."""

import subprocess
import sys
from pathlib import Path

import numpy as np

from ssil.benchmark.record import Record

TASKS, TRAIN, TEST = 30, 4, 20
BOUND = 60.0
"""Megabytes. From task 10 to task 30 the peak grew by 14 of them; with evaluation batches of 512 images, by 314."""


def test_the_peak_after_thirty_tasks_is_near_that_after_ten(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    x_train, x_test = (random.integers(256, size=(TASKS * n, 32, 32, 3), dtype=np.uint8) for n in (TRAIN, TEST))
    y_train, y_test = (np.repeat(np.arange(TASKS), n) for n in (TRAIN, TEST))
    np.savez(tmp_path / "noise.npz", x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)
    arguments = f"run --dataset noise.npz --tasks {TASKS} --memory {TASKS} --epochs 1 --backbone resnet8 --threads 1"
    command = [sys.executable, "-m", "ssil", *arguments.split(), "--device", "cpu", "--out", "run"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    tasks = Record.model_validate_json((tmp_path / "run" / "record.json").read_bytes()).tasks
    assert tasks[29].peak_memory_mb - tasks[9].peak_memory_mb < BOUND
