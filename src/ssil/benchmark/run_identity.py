"""The settings and the provenance that a run's records state, and whether a directory holds the same run."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from ssil.benchmark.config import RunConfig
from ssil.benchmark.record import Record, flat
from ssil.benchmark.scenario import Stream
from ssil.benchmark.stream_functions import source_file
from ssil.core import __version__
from ssil.core.errors import UserError
from ssil.core.files import checksum, read_file
from ssil.core.plugins import code_file, names_code
from ssil.data.dataset import Dataset
from ssil.data.image_index import as_utf8
from ssil.learning.distributed import AnyFabric
from ssil.learning.memory import MemoryBudget
from ssil.learning.registry import ConfiguredMethod
from ssil.learning.snapshot import MAIN
from ssil.nn.first_weights import find_first_weights

LISTED_FILES = 100
"""How many skipped files a record lists; it always states their number."""


def initial_records(
    config: RunConfig,
    configured: ConfiguredMethod,
    branch: ConfiguredMethod | None,
    dataset: Dataset,
    stream: Stream,
    budget: MemoryBudget,
    fabric: AnyFabric,
) -> dict[str, Record]:
    """Return the records of a run before its first task, by scorer."""
    classes = stream.tasks[-1].classes
    settings = recorded_settings(config, configured, branch)
    settings |= {"memory": recorded_budget(budget), "data_fingerprint": dataset.fingerprint}
    settings |= {"stream_fingerprint": stream.fingerprint} if config.stream else {}
    main = Record(
        config=_plain(settings),
        provenance=_plain(_provenance(config, dataset, fabric)),
        class_order=list(stream.class_order),
        class_names=list(classes.names),
        task_sizes=list(classes.sizes),
    )
    others = dict(_scorer_settings(main, configured)) | (_branch_settings(main, branch) if branch else {})
    return {MAIN: main} | {name: main.model_copy(update={"config": changed}) for name, changed in others.items()}


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as they are read from JSON; bytes of paths that are not UTF-8 are replaced."""
    plain: dict[str, Any] = json.loads(as_utf8(json.dumps(settings, ensure_ascii=False)))
    return plain


def recorded_settings(
    config: RunConfig, configured: ConfiguredMethod, branch: ConfiguredMethod | None
) -> dict[str, Any]:
    """Return all settings that decide a result, as far as they are known without the data."""
    sharing = {name: _recorded_method(other) for name, other in configured.sharing.items()}
    return config.what() | {
        "method": configured.name,
        "options": configured.options,
        **({"riders": sharing} if sharing else {}),
        **({"branch": _recorded_method(branch)} if branch else {}),
        "training": configured.training.stated(),
        **_source_checksums(method=configured.name, backbone=config.backbone, augment=config.augment or ""),
        **(_recorded_stream(config, config.stream) if config.stream else {}),
        **({"init_sha256": find_first_weights(config.init).sha256} if config.init else {}),
        **({"freeze": True} if config.freeze else {}),
    }


def recorded_budget(budget: MemoryBudget) -> dict[str, Any]:
    """Return a memory budget as plain values, without the sizes in bytes, which follow from data and network."""
    sizes = {name: value for name, value in vars(budget).items() if not name.endswith("_bytes")}
    return {"kind": budget.kind, **sizes}


def _scorer_settings(main: Record, configured: ConfiguredMethod) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the settings of each further scorer.

    A method that shares the training has those of a run of its own; an extra scorer those of the run, and its name.
    """
    own = {key: value for key, value in main.config.items() if key not in {"riders", "branch"}}
    shared = {key: value for key, value in own.items() if key != "method_sha256"}
    for name in configured.method.scorers:
        if name in configured.sharing:
            yield name, shared | main.config["riders"][name]
        elif name != MAIN:
            yield name, own | {"scorer": name}


def _branch_settings(main: Record, branch: ConfiguredMethod) -> dict[str, dict[str, Any]]:
    """Return the settings of a branch: those of a run of its own, and the method whose models it starts from."""
    own = {key: value for key, value in main.config.items() if key not in {"riders", "branch", "method_sha256"}}
    changed = {**_recorded_method(branch), "training": json.loads(json.dumps(branch.training.stated()))}
    return {branch.folder: own | changed | {"chain": main.config["method"]}}


def _recorded_method(other: ConfiguredMethod) -> dict[str, Any]:
    """Return what a record states of a method beside the run's own."""
    return {"method": other.name, "options": other.options, **_source_checksums(method=other.name)}


def _source_checksums(**references: str) -> dict[str, str]:
    """Return checksums of the user's own files (`file.py:name`), whose content may change while their names stay."""
    files = {name: code_file(reference) for name, reference in references.items() if names_code(reference)}
    for name, file in files.items():
        if not file.is_file():
            raise UserError(f"{name}: {str(file)!r}: there is no such file; a relative path starts at {Path.cwd()}")
    return {f"{name}_sha256": checksum(file.read_bytes(), 64) for name, file in files.items()}


def _recorded_stream(config: RunConfig, stream: str) -> dict[str, Any]:
    """Return what decides a stream in which classes return beside its name, as far as it is known without the data."""
    if not (file := source_file(stream)):
        shape = config.model_dump(mode="json", include={"tasks", "task_sizes", "large_base"}, exclude_none=True)
        return {"stream_settings": shape, "stream_class_order": config.class_order}
    if not file.is_file():
        raise UserError(f"stream: {str(file)!r}: there is no such file; a relative path starts at {Path.cwd()}")
    return {"stream_sha256": checksum(read_file(file), 64), "stream_class_order": config.class_order}


def _provenance(config: RunConfig, dataset: Dataset, fabric: AnyFabric) -> dict[str, Any]:
    return {
        "profile": config.profile,
        **({"name": config.name} if config.name else {}),
        **({"stream_name": config.stream_name} if config.stream_name else {}),
        **({"init": config.init} if config.init else {}),
        "ssil": __version__,
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
        **({"sources": list(dataset.sources)} if dataset.sources else {}),
        "images": {"train": len(dataset.train), "test": len(dataset.test)},
        "left_out": len(dataset.left_out),
        "skipped_files": [remark.path for remark in dataset.left_out[:LISTED_FILES]],
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _platform() -> str:
    """Describe what decides rounding on a CPU: with other instructions the same seed gives slightly other weights."""
    instructions = torch.backends.cpu.get_cpu_capability()
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {instructions}"


def _commit() -> str | None:
    """Return the commit of the source tree that ssil was imported from, or None if it is no Git checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


_ENVIRONMENT = ("ssil", "commit", "torch", "device", "devices", "accumulate", "compile", "threads")


def resumed_provenance(record: Record, now: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record's provenance, with an entry for what differs from it `now`, unless the run is finished."""
    then = record.provenance
    changed = {key: now.get(key) for key in _ENVIRONMENT if now.get(key) != then.get(key)}
    if not changed or record.summary:
        return then
    return then | {"resumed": [*then.get("resumed", []), {"task": len(record.tasks) + 1, **changed}]}


def identity(record: Record, configured: ConfiguredMethod) -> dict[str, Any]:
    """Return the settings that must be equal for a run to be resumed.

    Options that the record does not state have their defaults: they did not exist when it was written.
    """
    sharing = {
        name: other | {"options": {**configured.sharing[name].defaults, **other["options"]}}
        if name in configured.sharing
        else other
        for name, other in record.config.get("riders", {}).items()
    }
    options = {**configured.defaults, **record.config["options"]}
    stream = {"class_order": record.class_order, "task_sizes": record.task_sizes}
    return record.config | {"options": options, "riders": sharing} | stream


def refuse_other_run(folder: Path, kept: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raise UserError if the identity `kept` in the folder is not the `wanted` one; the data may have moved."""
    before, now = flat(kept), flat(wanted)
    changed = [name for name in sorted(before | now) if before.get(name) != now.get(name)]
    if "data_fingerprint" not in changed:
        changed = [name for name in changed if name != "dataset"]
    both = [name for name in changed if name in before and name in now]
    if files := [name.removesuffix("_sha256") for name in both if name.endswith("_sha256")]:
        raise UserError(f"out: {folder} was begun with another content of the {files[0]}'s file; give another --out")
    if changed == ["data_fingerprint"]:
        raise UserError(
            f"out: {folder} was begun with other images (some were added, removed or changed since); give another --out"
        )
    if changed:
        shown = "; ".join(f"{name}: {_short(before.get(name))} there, {_short(now.get(name))} here" for name in changed)
        raise UserError(f"out: {folder} holds a run with other settings ({shown}); give another --out")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:36]}..."
