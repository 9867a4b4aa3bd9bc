"""From a configuration to what a run needs: the stream, the method, the bench, the record's header."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric

from ssil.benchmark.config import RunConfig
from ssil.benchmark.record import Record
from ssil.benchmark.record_header import by_scorer, header, of_branch, said, what
from ssil.benchmark.scenario import Stream, build_stream, class_order, read_order, task_sizes
from ssil.core.errors import UserError
from ssil.core.files import checksum
from ssil.core.randomness import Randomness
from ssil.core.samples import Samples
from ssil.data.augmentation import Transform
from ssil.data.dataset import Dataset, validation_split
from ssil.data.file_validation import ProgressCallback
from ssil.data.image_index import Remark
from ssil.data.load import load
from ssil.learning.engine import fresh
from ssil.learning.execution import ExecutionContext
from ssil.learning.memory import FixedBudget, GrowingBudget, MemoryBudget, NoBudget, UnlimitedBudget
from ssil.learning.processes import launched
from ssil.learning.registry import RESERVED, ConfiguredMethod, configure, find_recipe
from ssil.learning.snapshot import MAIN
from ssil.nn.backbones import find_backbone
from ssil.nn.pretrained import Pretrained, read_pretrained

FEATURES = ("backbone", "backbone_sha256", "norm", "init_sha256", "precision")
"""The settings on which frozen features depend, beside the data."""


@dataclass(frozen=True)
class Plan:
    """All that a run needs, before its first step."""

    config: RunConfig
    configured: ConfiguredMethod
    branch: ConfiguredMethod | None
    stream: Stream
    context: ExecutionContext
    budget: MemoryBudget
    headers: dict[str, Record]
    """By scorer: the method's own, those of methods that ride along, and the method's extra ones."""
    remarks: tuple[Remark, ...]
    """On the data: what was left out, and what is odd."""

    @property
    def header(self) -> Record:
        """That of the scorer which the method is judged by."""
        return self.headers[MAIN]


def prepare(config: RunConfig, on_progress: ProgressCallback | None = None) -> Plan:
    """Load the data, lay out the stream, set up the method and the devices; `told` hears of image files examined."""
    _use_threads(config)
    configured = configure(config.method, config.profile, config.training, config.options, config.increments)
    branch = _branch(config, configured) if config.branch else None
    find_backbone(config.backbone)  # an unknown one is refused before anything is read or written
    if config.freeze and not config.init:
        raise UserError("freeze: a backbone with random weights is not worth freezing; give --init too")
    init = read_pretrained(config.init) if config.init else None
    dataset = _dataset(config, on_progress)
    random = Randomness(config.seed)
    stream = _stream(config, dataset)
    budget = _room(config, configured, stream.tasks[-1].classes.seen)
    fabric = _fabric(config)  # what can be refused has been, by the one process that there was so far
    train, test = (Samples(part.images.to(fabric.device), part.labels) for part in (stream.train, stream.test))
    stream = replace(stream, train=train, test=test)
    context = _bench(config, fabric, train, dataset.transform, random, init)
    if init:
        first = fresh(configured.method, stream.tasks[0].classes, context)  # weights that do not fit are refused here
        if config.freeze:
            context, test = context.frozen(first, stream.test, _features_name(config, configured, dataset, fabric))
            stream = replace(stream, train=context.samples, test=test)
    first_words = header(config, configured, branch, dataset, stream, budget, fabric)
    headers = by_scorer(first_words, configured) | ({branch.folder: of_branch(first_words, branch)} if branch else {})
    return Plan(config, configured, branch, stream, context, budget, headers, dataset.remarks)


def _features_name(config: RunConfig, configured: ConfiguredMethod, dataset: Dataset, fabric: Fabric) -> str:
    """What features are cached by: all that decides their bits."""
    settings = {key: value for key, value in what(config, configured, None).items() if key in FEATURES}
    machine = torch.__version__, fabric.device.type, torch.get_num_threads()
    made_of = dataset.fingerprint, dataset.transform, configured.method.final_relu, sorted(settings.items()), machine
    return f"features-{checksum(repr(made_of).encode(), 16)}"


def _branch(config: RunConfig, configured: ConfiguredMethod) -> ConfiguredMethod:
    """The method that learns beside the run's own; it takes those of the options that it has."""
    assert config.branch
    known = find_recipe(config.branch).options
    options = {name: value for name, value in config.options.items() if name in known}
    branch = configure(config.branch, config.profile, config.training, options, config.increments)
    if branch.folder in {*configured.method.scorers, *RESERVED}:
        raise UserError(f"branch: another part of the run is called {branch.folder!r}; give the method another name")
    kinds = {(type(one.method.head(1)), one.method.final_relu) for one in (branch, configured)}
    if len(kinds) > 1:
        raise UserError(
            f"branch: {branch.name} has another kind of head than {configured.name}, so it can't go on from its models"
        )
    return branch


def _dataset(config: RunConfig, on_progress: ProgressCallback | None) -> Dataset:
    dataset = load(config, config.threads, on_progress)
    return validation_split(dataset, config.validation, config.seed) if config.validation else dataset


def _stream(config: RunConfig, dataset: Dataset) -> Stream:
    order, sizes = _order(config, dataset.classes), _sizes(config, len(dataset.classes))
    return build_stream(dataset.train, dataset.test, dataset.classes, order, sizes)


def _order(config: RunConfig, names: Sequence[str]) -> list[int]:
    if isinstance(config.class_order, str) and not config.class_order.isdigit():
        return read_order(Path(config.class_order), names)
    return class_order(len(names), Randomness(config.seed if config.class_order is None else int(config.class_order)))


def _sizes(config: RunConfig, classes: int) -> tuple[int, ...]:
    return config.task_sizes or task_sizes(classes, config.tasks, config.large_base)


def _use_threads(config: RunConfig) -> None:
    if config.threads:
        torch.set_num_threads(config.threads)


def _fabric(config: RunConfig) -> Fabric:
    """On "auto" a GPU if there is one; never Apple's, which lacks float64 and has not been tested."""
    device = ("cuda" if torch.cuda.is_available() else "cpu") if config.device == "auto" else config.device
    mixed = config.precision if config.precision in ("bf16-mixed", "16-mixed") else None
    fabric = launched(device, config.devices, config.nodes, mixed)
    _use_threads(config)  # again: the launch has its own idea of them
    if device == "cuda":
        torch.set_float32_matmul_precision("high" if config.precision == "tf32-true" else "highest")
    return fabric


def _bench(
    config: RunConfig,
    fabric: Fabric,
    train: Samples,
    transform: Transform,
    random: Randomness,
    init: Pretrained | None,
) -> ExecutionContext:
    dtype = torch.float64 if config.precision == "64-true" else torch.float32
    return ExecutionContext(
        fabric,
        train,
        transform,
        random,
        config.backbone,
        config.norm,
        dtype,
        init,
        config.accumulate,
        "inductor" if config.compile else None,
    )


def _room(config: RunConfig, configured: ConfiguredMethod, classes: int) -> MemoryBudget:
    if configured.method.memory == "none":
        return NoBudget()
    if configured.method.memory == "all":
        return UnlimitedBudget()
    if config.memory_per_class:
        return GrowingBudget(config.memory_per_class)
    total = config.memory or 20 * classes
    if total < classes:
        raise UserError(f"memory: {total} is less than one exemplar for each of {classes} classes; give at least that")
    return FixedBudget(total)


def described(config: RunConfig) -> tuple[ConfiguredMethod, dict[str, Any]]:
    """The method, and what the record is going to say of all settings, as far as it can be said without the data."""
    configured = configure(config.method, config.profile, config.training, config.options, config.increments)
    branch = _branch(config, configured) if config.branch else None
    return configured, json.loads(json.dumps(what(config, configured, branch)))


def foreseen(config: RunConfig, like: Record) -> tuple[ConfiguredMethod, Record]:
    """The method, and what the record of such a run says of all settings if its data are those of another record."""
    configured, settings = described(config)
    names = dict(zip(like.class_order, like.class_names, strict=False))
    all_named = len(names) == len(like.class_order)  # else some classes stay out, and their names are not known
    order = _order(config, [names[label] for label in range(len(names))]) if all_named else like.class_order
    sizes = _sizes(config, len(like.class_order))
    budget = said(_room(config, configured, sum(sizes)))
    settings |= {"memory": budget, "data_fingerprint": like.config["data_fingerprint"]}
    return configured, like.model_copy(update={"config": settings, "class_order": order, "task_sizes": [*sizes]})
