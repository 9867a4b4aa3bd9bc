"""What a record says before the first task: every setting, where it all comes from, the classes."""

import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric

from ssil.benchmark.config import RunConfig
from ssil.benchmark.record import Record
from ssil.benchmark.scenario import Stream
from ssil.core.files import checksum
from ssil.data.dataset import Dataset
from ssil.learning.memory import MemoryBudget
from ssil.learning.registry import ConfiguredMethod
from ssil.learning.snapshot import MAIN
from ssil.nn.pretrained import find_pretrained

NAMED = 100
"""How many of the files that were left out a record names; it always has their number."""


def header(
    config: RunConfig,
    configured: ConfiguredMethod,
    branch: ConfiguredMethod | None,
    dataset: Dataset,
    stream: Stream,
    budget: MemoryBudget,
    fabric: Fabric,
) -> Record:
    """What a record says before the first task."""
    classes = stream.tasks[-1].classes
    settings = what(config, configured, branch) | {
        "memory": said(budget),
        "data_fingerprint": dataset.fingerprint,
    }
    return Record(
        config=json.loads(json.dumps(settings)),
        provenance=_provenance(config, dataset, fabric),
        class_order=list(stream.class_order),
        class_names=list(classes.names),
        task_sizes=list(classes.sizes),
    )


def what(config: RunConfig, configured: ConfiguredMethod, branch: ConfiguredMethod | None) -> dict[str, Any]:
    """All settings that decide a result, as far as they can be told without the data."""
    return config.what() | {
        "method": configured.name,
        "options": configured.options,
        **({"riders": _riders(configured)} if configured.riders else {}),
        **({"branch": _said(branch)} if branch else {}),
        "training": asdict(configured.training),
        **_source_files(method=configured.name, backbone=config.backbone),
        **({"init_sha256": checksum(find_pretrained(config.init).read_bytes(), 64)} if config.init else {}),
        **({"freeze": True} if config.freeze else {}),
    }


def said(budget: MemoryBudget) -> dict[str, Any]:
    """A memory's rule."""
    return {"kind": budget.kind, **vars(budget)}


def by_scorer(header: Record, configured: ConfiguredMethod) -> dict[str, Record]:
    """A rider's header is that of a run of its own; an extra scorer's names the scorer."""
    own = {key: value for key, value in header.config.items() if key not in {"riders", "branch"}}
    others = {key: value for key, value in own.items() if key != "method_sha256"}

    def config(name: str) -> dict[str, Any]:
        return others | header.config["riders"][name] if name in configured.riders else own | {"scorer": name}

    names = [name for name in configured.method.scorers if name != MAIN]
    return {MAIN: header} | {name: header.model_copy(update={"config": config(name)}) for name in names}


def of_branch(header: Record, branch: ConfiguredMethod) -> Record:
    """A branch's header is that of a run of its own, but for the chain that it goes on from at every task."""
    own = {key: value for key, value in header.config.items() if key not in {"riders", "branch", "method_sha256"}}
    said = {**_said(branch), "training": json.loads(json.dumps(asdict(branch.training)))}
    return header.model_copy(update={"config": own | said | {"chain": header.config["method"]}})


def _riders(configured: ConfiguredMethod) -> dict[str, Any]:
    """What a run of its own would say of each rider."""
    return {name: _said(rider) for name, rider in configured.riders.items()}


def _said(other: ConfiguredMethod) -> dict[str, Any]:
    """What a record says of a method beside the run's own."""
    return {"method": other.name, "options": other.options, **_source_files(method=other.name)}


def _source_files(**references: str) -> dict[str, str]:
    """Checksums of the user's own files (`file.py:name`), which may change while their names stay."""
    files = {name: reference.rpartition(":")[0] for name, reference in references.items()}
    return {f"{name}_sha256": checksum(Path(file).read_bytes(), 64) for name, file in files.items() if file}


def _provenance(config: RunConfig, dataset: Dataset, fabric: Fabric) -> dict[str, Any]:
    return {
        "profile": config.profile,
        **({"init": config.init} if config.init else {}),
        "ssil": version("ssil"),
        "commit": _commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": _platform(),
        "device": str(fabric.device),
        "devices": fabric.world_size,
        **({"accumulate": config.accumulate} if config.accumulate > 1 else {}),
        **({"compile": True} if config.compile else {}),
        "threads": torch.get_num_threads(),
        "command": " ".join(["ssil", *sys.argv[1:]]),
        "synthetic_data": dataset.synthetic,
        "images": {"train": len(dataset.train), "test": len(dataset.test)},
        "left_out": len(dataset.left_out),
        "skipped_files": [remark.path for remark in dataset.left_out[:NAMED]],
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _platform() -> str:
    """What decides rounding on a CPU: on other instructions the same seed gives slightly other weights."""
    instructions = torch.backends.cpu.get_cpu_capability()
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {instructions}"


def _commit() -> str | None:
    """The commit of the source tree that ssil was imported from, if it is one."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
