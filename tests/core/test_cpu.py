"""OpenMP's waiting threads sleep early, whichever way the package is entered; the cores that may be used."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ssil.core import cpu
from ssil.core.cpu import usable_cores

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


THREADS = "; ".join(
    [
        "from ssil.core.cpu import usable_cores",
        "from ssil.data.prefetch import default_threads",
        "print(usable_cores(), default_threads())",
    ]
)


@pytest.mark.skipif(not shutil.which("taskset"), reason="needs taskset")
def test_cores_of_other_processes_are_not_used() -> None:
    first = str(min(os.sched_getaffinity(0)))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = ["taskset", "-c", first, sys.executable, "-c", THREADS]
    assert subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout == "1 2\n"


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The control groups of a machine of eight cores."""
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {*range(8)}, raising=False)
    monkeypatch.setattr(cpu, "CGROUPS", tmp_path)
    monkeypatch.setattr(cpu, "MEMBERSHIP", tmp_path / "self")
    return tmp_path


def write(folder: Path, **contents: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in contents.items():
        (folder / name.replace("cpu_", "cpu.")).write_text(f"{text}\n")


@pytest.mark.parametrize(
    ("limit", "cores"),
    [("max 100000", 8), ("200000 100000", 2), ("150000 100000", 2), ("10000 100000", 1), ("9900000 100000", 8)],
)
def test_a_quota_of_version_2_limits_the_cores(groups: Path, limit: str, cores: int) -> None:
    write(groups, self="0::/jobs/7")
    write(groups / "jobs/7", cpu_max=limit)
    assert usable_cores() == cores


def test_the_quota_of_a_containing_group_counts_too(groups: Path) -> None:
    write(groups, self="0::/jobs/7")
    write(groups / "jobs/7", cpu_max="600000 100000")
    write(groups / "jobs", cpu_max="300000 100000")
    assert usable_cores() == 3


@pytest.mark.parametrize("group", ["/", "/docker/0123"])  # of the host, so that its folder is not there
def test_a_quota_inside_a_container_limits_the_cores(groups: Path, group: str) -> None:
    write(groups, self=f"0::{group}", cpu_max="400000 100000")
    assert usable_cores() == 4


@pytest.mark.parametrize(("quota", "cores"), [("-1", 8), ("250000", 3)])
def test_a_quota_of_version_1_limits_the_cores(groups: Path, quota: str, cores: int) -> None:
    write(groups, self="5:memory:/a\n4:cpu,cpuacct:/a\n0::/")
    write(groups / "cpu/a", cpu_cfs_quota_us=quota, cpu_cfs_period_us="100000")
    assert usable_cores() == cores


def test_without_control_groups_the_affinity_mask_counts(groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {2, 5, 6}, raising=False)
    assert usable_cores() == 3
