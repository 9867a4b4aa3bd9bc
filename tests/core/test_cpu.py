"""OpenMP's waiting threads sleep early, whichever way the package is entered."""

import os
import subprocess
import sys

import pytest

READ_BY_LIBGOMP = {"OMP_DISPLAY_ENV": "verbose"}  # it prints its settings when it is loaded
ENTRIES = {
    "import": "import ssil, torch",
    "name": "from ssil import run",
    "command": "from ssil.cli import main; main(['methods'])",
    "module": "import runpy, sys; sys.argv = ['ssil', 'methods']; runpy.run_module('ssil', run_name='__main__')",
    "worker": "import ssil.benchmark.grid.cluster_worker, torch",
}


def settings_of_openmp(code: str, **environment: str) -> str:
    """Return what libgomp has read from the environment in a fresh process."""
    unset = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    process = subprocess.run(
        [sys.executable, "-c", code],
        env=unset | READ_BY_LIBGOMP | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return process.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="torch uses libgomp on Linux only")
@pytest.mark.parametrize("code", ENTRIES.values(), ids=ENTRIES)
def test_openmp_reads_the_bounded_spin_on_every_entry(code: str) -> None:
    assert "GOMP_SPINCOUNT = '1000'" in settings_of_openmp(code)


@pytest.mark.skipif(sys.platform != "linux", reason="torch uses libgomp on Linux only")
def test_a_setting_of_the_user_is_kept() -> None:
    assert "GOMP_SPINCOUNT = '7'" in settings_of_openmp(ENTRIES["import"], GOMP_SPINCOUNT="7")
    assert "GOMP_SPINCOUNT = '1000'" not in settings_of_openmp(ENTRIES["import"], OMP_WAIT_POLICY="active")
