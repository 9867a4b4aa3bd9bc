"""The cores that this process may use, and how threads wait for each other."""

import os
from collections.abc import Iterator, MutableMapping
from contextlib import suppress
from math import ceil
from pathlib import Path, PurePosixPath

SPIN_COUNT = "1000"
"""How often a thread of OpenMP looks again whether the others are ready before it sleeps.

The default of libgomp is about 300,000 times: while another program has the core that a late thread needs, the waiting
thread keeps its own core busy. See docs/results/speed.md for measurements.
"""

CGROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


def bound_spinning(environment: MutableMapping[str, str] = os.environ) -> None:
    """Let waiting threads of OpenMP sleep early, unless the environment already sets how they wait.

    libgomp, which torch uses on Linux, reads the variable when it is loaded, so this must precede `import torch`.

    >>> environment = {}
    >>> bound_spinning(environment)
    >>> environment
    {'GOMP_SPINCOUNT': '1000'}
    """
    if "OMP_WAIT_POLICY" not in environment:
        environment.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)


def usable_cores() -> int:
    """Return the number of cores that this process may use.

    It is limited by the machine, by the affinity mask (`taskset`, Slurm) and by the CPU quota of the control groups
    of Linux (containers), of which a fraction counts as a whole core.
    """
    with suppress(AttributeError):  # macOS and Windows have no affinity mask here
        return max(1, min(len(os.sched_getaffinity(0)), *_quotas()))
    return os.cpu_count() or 1


def _quotas() -> Iterator[int]:
    """Yield the number of cores of the machine, and the quota of each control group that this process belongs to."""
    yield os.cpu_count() or 1
    with suppress(OSError):
        for line in MEMBERSHIP.read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if not controllers or "cpu" in controllers.split(","):
                yield from _quotas_along(CGROUPS / ("cpu" if controllers else ""), group)


def _quotas_along(root: Path, group: str) -> Iterator[int]:
    """Yield the quota of a control group and of those that contain it, up to the root.

    Inside a container the path of the group may be that of the host, which is not there: its own group is the root.
    """
    path = PurePosixPath(group.strip("/"))
    for folder in {path, *path.parents}:
        for quota, period in _quota_files(root / folder):
            if quota > 0:
                yield ceil(quota / period)


def _quota_files(folder: Path) -> Iterator[tuple[int, int]]:
    """Yield microseconds of CPU time per period, from the files of version 2 (`cpu.max`) and version 1."""
    with suppress(OSError, ValueError):  # "max", which is no number, is no limit
        quota, period = (folder / "cpu.max").read_text().split()
        yield int(quota), int(period)
    with suppress(OSError, ValueError):
        yield int((folder / "cpu.cfs_quota_us").read_text()), int((folder / "cpu.cfs_period_us").read_text())
