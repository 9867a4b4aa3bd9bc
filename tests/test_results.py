"""The tables in docs/results are those that their commands print."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STREAMS = {
    "cifar100-small": "cifar100-small.md",
    "cifar100-methods": "methods.md",
    "glyphs-10": "methods.md",
    "glyphs-largebase": "methods.md",
    "glyphs-growing": "methods.md",
}


@pytest.mark.parametrize(("stream", "document"), STREAMS.items())
def test_the_table_of_a_stream(stream: str, document: str) -> None:
    command = [sys.executable, "benchmarks/streams.py", stream, "--runs", f"docs/results/{stream}", "--table-only"]
    printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert printed.count("\n") > 2
    assert printed in (ROOT / "docs/results" / document).read_text()
