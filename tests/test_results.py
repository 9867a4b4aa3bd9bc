"""The tables in docs/results are those that their commands print."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_small_cifar100_table() -> None:
    runs = "docs/results/cifar100-small"
    command = [sys.executable, "benchmarks/cifar100_small.py", "--runs", runs, "--table-only"]
    printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert printed.count("\n") > 2
    assert printed in (ROOT / "docs/results/cifar100-small.md").read_text()
