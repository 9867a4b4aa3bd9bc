"""From a configuration to what a run needs: the stream, the method, the bench, the record's header."""

import json
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric

from ssil import data
from ssil.bench import Bench
from ssil.config import RunConfig
from ssil.data import Dataset, Remark, Told
from ssil.engine import fresh
from ssil.errors import UserError
from ssil.memory import Fixed, Growing, Nothing, Room, Unlimited
from ssil.nn import find_backbone, find_pretrained, read_pretrained
from ssil.randomness import Randomness
from ssil.recipes import RESERVED, Configured, configure, find_recipe
from ssil.record import Record
from ssil.scenario import Stream, build_stream, class_order, read_order, task_sizes
from ssil.snapshot import MAIN
from ssil.types import Samples

DATA_OPTIONS = (
    "classes",
    "class_list",
    "min_per_class",
    "max_per_class",
    "train_per_class",
    "test_per_class",
    "image_size",
    "augment",
    "strict",
    "in_memory",
    "threads",
)

FEATURES = ("backbone", "backbone_sha256", "norm", "init_sha256", "precision")
"""The settings on which frozen features depend, beside the data."""

NAMED = 100
"""How many of the files that were left out a record names; it always has their number."""


@dataclass(frozen=True)
class Plan:
    """All that a run needs, before its first step."""

    config: RunConfig
    configured: Configured
    branch: Configured | None
    stream: Stream
    bench: Bench
    room: Room
    headers: dict[str, Record]
    """By scorer: the method's own, those of methods that ride along, and the method's extra ones."""
    remarks: tuple[Remark, ...]
    """On the data: what was left out, and what is odd."""

    @property
    def header(self) -> Record:
        """That of the scorer which the method is judged by."""
        return self.headers[MAIN]


def prepare(config: RunConfig, told: Told | None = None) -> Plan:
    """Load the data, lay out the stream, set up the method and the devices; `told` hears of image files examined."""
    if config.threads:
        torch.set_num_threads(config.threads)
    configured = configure(config.method, config.profile, config.training, config.options, _increments(config))
    branch = _branch(config, configured) if config.branch else None
    find_backbone(config.backbone)  # an unknown one is refused before anything is read or written
    if config.freeze and not config.init:
        raise UserError("freeze: a backbone with random weights is not worth freezing; give --init too")
    init = read_pretrained(config.init) if config.init else None
    dataset = _dataset(config, told)
    random = Randomness(config.seed)
    fabric = _fabric(config)
    stream = _stream(config, dataset, random, fabric.device)
    dtype = torch.float64 if config.precision == "64-true" else torch.float32
    bench = Bench(fabric, stream.train, dataset.transform, random, config.backbone, config.norm, dtype, init)
    if init:
        first = fresh(configured.method, stream.tasks[0].classes, bench)  # weights that do not fit are refused here
        if config.freeze:
            bench, test = bench.frozen(first, stream.test, _features_name(config, configured, dataset, fabric))
            stream = replace(stream, train=bench.samples, test=test)
    room = _room(config, configured, stream.tasks[-1].classes.seen)
    header = _header(config, configured, branch, dataset, stream, room, fabric)
    headers = _by_scorer(header, configured) | ({branch.folder: _of_branch(header, branch)} if branch else {})
    return Plan(config, configured, branch, stream, bench, room, headers, dataset.remarks)


def _features_name(config: RunConfig, configured: Configured, dataset: Dataset, fabric: Fabric) -> str:
    """What features are cached by: all that decides their bits."""
    what = {key: value for key, value in _what(config, configured, None).items() if key in FEATURES}
    machine = torch.__version__, fabric.device.type, torch.get_num_threads()
    made_of = dataset.fingerprint, dataset.transform, configured.method.final_relu, sorted(what.items()), machine
    return f"features-{sha256(repr(made_of).encode()).hexdigest()[:16]}"


def _branch(config: RunConfig, configured: Configured) -> Configured:
    """The method that learns beside the run's own; it takes those of the options that it has."""
    assert config.branch
    known = find_recipe(config.branch).options
    options = {name: value for name, value in config.options.items() if name in known}
    branch = configure(config.branch, config.profile, config.training, options, _increments(config))
    if branch.folder in {*configured.method.scorers, *RESERVED}:
        raise UserError(f"branch: another part of the run is called {branch.folder!r}; give the method another name")
    kinds = {(type(one.method.head(1)), one.method.final_relu) for one in (branch, configured)}
    if len(kinds) > 1:
        raise UserError(
            f"branch: {branch.name} has another kind of head than {configured.name}, so it can't go on from its models"
        )
    return branch


def _increments(config: RunConfig) -> int:
    """T: the tasks of a base stream; in a stream with a large base the tasks after it."""
    return len(config.task_sizes) if config.task_sizes else config.tasks


def _dataset(config: RunConfig, told: Told | None) -> Dataset:
    options = {name: getattr(config, name) for name in DATA_OPTIONS}
    dataset = data.load(config.dataset, root=config.data_root, seed=config.split_seed or 0, told=told, **options)
    if config.least:
        dataset = data.uneven(dataset, config.least, config.split_seed or 0)
    return data.validation_split(dataset, config.validation, config.seed) if config.validation else dataset


def _stream(config: RunConfig, dataset: Dataset, random: Randomness, device: torch.device) -> Stream:
    count = len(dataset.classes)
    if isinstance(config.class_order, str) and not config.class_order.isdigit():
        order = read_order(Path(config.class_order), dataset.classes)
    else:
        order = class_order(count, random if config.class_order is None else Randomness(int(config.class_order)))
    sizes = config.task_sizes or task_sizes(count, config.tasks, config.large_base)
    train, test = (Samples(part.images.to(device), part.labels) for part in (dataset.train, dataset.test))
    return build_stream(train, test, dataset.classes, order, sizes)


def _fabric(config: RunConfig) -> Fabric:
    """On "auto" a GPU if there is one; never Apple's, which lacks float64 and has not been tested."""
    device = ("cuda" if torch.cuda.is_available() else "cpu") if config.device == "auto" else config.device
    precision = "32-true" if config.precision == "64-true" else config.precision
    try:
        fabric = Fabric(accelerator=device, devices=config.devices, precision=precision)
    except (ValueError, RuntimeError):
        here = torch.cuda.device_count() if device == "cuda" else config.devices
        raise UserError(
            f"device: {config.devices} of {device!r} can't be used, there are {here}; try --device cpu"
        ) from None
    fabric.launch()
    return fabric


def _room(config: RunConfig, configured: Configured, classes: int) -> Room:
    if configured.method.memory == "none":
        return Nothing()
    if configured.method.memory == "all":
        return Unlimited()
    if config.memory_per_class:
        return Growing(config.memory_per_class)
    total = config.memory or 20 * classes
    if total < classes:
        raise UserError(f"memory: {total} is less than one exemplar for each of {classes} classes; give at least that")
    return Fixed(total)


def _header(
    config: RunConfig,
    configured: Configured,
    branch: Configured | None,
    dataset: Dataset,
    stream: Stream,
    room: Room,
    fabric: Fabric,
) -> Record:
    classes = stream.tasks[-1].classes
    what = _what(config, configured, branch) | {
        "memory": {"kind": type(room).__name__.lower(), **vars(room)},
        "data_fingerprint": dataset.fingerprint,
    }
    return Record(
        config=json.loads(json.dumps(what)),
        provenance=_provenance(config, dataset, fabric),
        class_order=list(stream.class_order),
        class_names=list(classes.names),
        task_sizes=list(classes.sizes),
    )


def described(config: RunConfig) -> tuple[Configured, dict[str, Any]]:
    """The method, and what the record is going to say of all settings, as far as it can be said without the data."""
    configured = configure(config.method, config.profile, config.training, config.options, _increments(config))
    branch = _branch(config, configured) if config.branch else None
    return configured, json.loads(json.dumps(_what(config, configured, branch)))


def _what(config: RunConfig, configured: Configured, branch: Configured | None) -> dict[str, Any]:
    return config.what() | {
        "method": configured.name,
        "options": configured.options,
        **({"riders": _riders(configured)} if configured.riders else {}),
        **({"branch": _said(branch)} if branch else {}),
        "training": asdict(configured.training),
        **_source_files(method=configured.name, backbone=config.backbone),
        **({"init_sha256": _checksum(find_pretrained(config.init))} if config.init else {}),
        **({"freeze": True} if config.freeze else {}),
    }


def _by_scorer(header: Record, configured: Configured) -> dict[str, Record]:
    """A rider's header is that of a run of its own; an extra scorer's names the scorer."""
    own = {key: value for key, value in header.config.items() if key not in {"riders", "branch"}}
    others = {key: value for key, value in own.items() if key != "method_sha256"}

    def config(name: str) -> dict[str, Any]:
        return others | header.config["riders"][name] if name in configured.riders else own | {"scorer": name}

    names = [name for name in configured.method.scorers if name != MAIN]
    return {MAIN: header} | {name: header.model_copy(update={"config": config(name)}) for name in names}


def _of_branch(header: Record, branch: Configured) -> Record:
    """A branch's header is that of a run of its own, but for the chain that it goes on from at every task."""
    own = {key: value for key, value in header.config.items() if key not in {"riders", "branch", "method_sha256"}}
    said = {**_said(branch), "training": json.loads(json.dumps(asdict(branch.training)))}
    return header.model_copy(update={"config": own | said | {"chain": header.config["method"]}})


def _riders(configured: Configured) -> dict[str, Any]:
    """What a run of its own would say of each rider."""
    return {name: _said(rider) for name, rider in configured.riders.items()}


def _said(other: Configured) -> dict[str, Any]:
    """What a record says of a method beside the run's own."""
    return {"method": other.name, "options": other.options, **_source_files(method=other.name)}


def _source_files(**references: str) -> dict[str, str]:
    """Checksums of the user's own files (`file.py:name`), which may change while their names stay."""
    files = {name: reference.rpartition(":")[0] for name, reference in references.items()}
    return {f"{name}_sha256": _checksum(Path(file)) for name, file in files.items() if file}


def _checksum(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def _provenance(config: RunConfig, dataset: Dataset, fabric: Fabric) -> dict[str, Any]:
    return {
        "profile": config.profile,
        **({"init": config.init} if config.init else {}),
        "ssil": version("ssil"),
        "commit": _commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(),
        "device": str(fabric.device),
        "devices": fabric.world_size,
        "threads": torch.get_num_threads(),
        "command": " ".join(["ssil", *sys.argv[1:]]),
        "synthetic_data": dataset.synthetic,
        "images": {"train": len(dataset.train), "test": len(dataset.test)},
        "left_out": len(dataset.left_out),
        "skipped_files": [remark.path for remark in dataset.left_out[:NAMED]],
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _commit() -> str | None:
    """The commit of the source tree that ssil was imported from, if it is one."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
