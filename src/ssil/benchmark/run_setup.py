"""The set-up of a run: data, stream, method, devices, memory budget and first records, from its configuration."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import torch

from ssil.benchmark.chosen_stream import chosen_stream
from ssil.benchmark.config import RunConfig
from ssil.benchmark.record import Record
from ssil.benchmark.run_identity import initial_records, recorded_budget, recorded_settings
from ssil.benchmark.scenario import Stream, chosen_order, chosen_sizes
from ssil.core.errors import UserError
from ssil.core.files import checksum
from ssil.core.randomness import Randomness
from ssil.core.samples import Samples
from ssil.data.augmentation import Transform
from ssil.data.dataset import Dataset, validation_split
from ssil.data.file_validation import ProgressCallback
from ssil.data.image_index import Remark
from ssil.data.load import load
from ssil.data.resident_images import Unchanged
from ssil.learning.distributed import AnyFabric, launch, use_threads
from ssil.learning.execution import ExecutionContext
from ssil.learning.learning_settings import MemorySettings
from ssil.learning.memory import FixedBudget, GrowingBudget, MegabyteBudget, MemoryBudget, NoBudget, UnlimitedBudget
from ssil.learning.method import Method
from ssil.learning.model_state import initial_network
from ssil.learning.registry import RESERVED, ConfiguredMethod, configure, find_recipe
from ssil.learning.snapshot import MAIN
from ssil.nn.backbones import BACKBONES, find_backbone
from ssil.nn.first_weights import decided_settings, find_first_weights, read_first_weights
from ssil.nn.pretrained import Pretrained

FEATURE_SETTINGS = ("backbone", "backbone_sha256", "norm", "init_sha256", "precision")
"""The settings on which frozen features depend, beside the data."""


@dataclass(frozen=True)
class RunSetup:
    """All that a run needs before its first step."""

    config: RunConfig
    configured: ConfiguredMethod
    branch: ConfiguredMethod | None
    stream: Stream
    context: ExecutionContext
    budget: MemoryBudget
    records: dict[str, Record]
    """The records before the first task, by scorer: the method's main one, those of methods that share its training,
    its extra ones, the branch's."""
    remarks: tuple[Remark, ...]
    """Image files that were left out, and oddities."""

    @property
    def record(self) -> Record:
        """The record of the method's main scorer."""
        return self.records[MAIN]


def set_up(
    config: RunConfig, on_progress: ProgressCallback | None = None, on_features: ProgressCallback | None = None
) -> RunSetup:
    """Load the data, build the stream, configure the method and start the devices.

    What can be refused is refused before the devices are started, while there is only one process.

    Args:
        config: The run's settings.
        on_progress: Called with the numbers of examined and of all image files.
        on_features: Called with the numbers of images whose frozen features are computed, and of all images.
    """
    use_threads(config.threads)
    config = _with_weights_settings(config)
    configured, branch = _configured_methods(config)
    find_backbone(config.backbone)  # raises UserError if it is unknown
    if config.freeze and not config.init:
        raise UserError("freeze: a backbone with random weights is not worth freezing; give --init too")
    init = read_first_weights(find_first_weights(config.init)) if config.init else None
    whole = load(config, config.threads, on_progress)
    dataset = validation_split(whole, config.validation, config.seed) if config.validation else whole
    _refuse_other_backbones(config, dataset)
    stream = chosen_stream(config, whole, dataset)
    budget = memory_budget(config, configured.method, stream.tasks[-1].classes.seen)
    fabric = _start_devices(config)
    stream = replace(stream, train=_on_device(stream.train, fabric), test=_on_device(stream.test, fabric))
    context = _execution_context(config, fabric, stream.train, dataset.transform, init)
    if init:
        stream, context = _with_first_weights(config, configured, dataset, stream, context, on_features)
    records = initial_records(config, configured, branch, dataset, stream, budget, fabric)
    return RunSetup(config, configured, branch, stream, context, budget, records, dataset.remarks)


def _refuse_other_backbones(config: RunConfig, dataset: Dataset) -> None:
    """Raise UserError if the data are features, and the backbone is one for images."""
    if not isinstance(dataset.transform, Unchanged):
        return
    if config.init:
        raise UserError(f"init: {dataset.name} has features, not images; leave it out")
    if config.backbone in BACKBONES and config.backbone != "identity":
        raise UserError(f"backbone: {config.backbone} is for images, and {dataset.name} has features; give identity")


def _with_weights_settings(config: RunConfig) -> RunConfig:
    """Return the settings with the backbone and the input that the first weights decide."""
    if not config.init:
        return config
    given = {name: getattr(config, name) for name in config.model_fields_set}
    return config.model_copy(update=decided_settings(find_first_weights(config.init), given))


def _on_device(samples: Samples, fabric: AnyFabric) -> Samples:
    return Samples(samples.images.to(fabric.device), samples.labels)


def _with_first_weights(
    config: RunConfig,
    configured: ConfiguredMethod,
    dataset: Dataset,
    stream: Stream,
    context: ExecutionContext,
    on_features: ProgressCallback | None,
) -> tuple[Stream, ExecutionContext]:
    """Check that the first weights fit the network; with a frozen backbone, replace images by their features."""
    network = initial_network(configured.method, stream.tasks[0].classes, context)
    if not config.freeze:
        return stream, context
    name = _feature_cache_name(config, configured, dataset, context)
    context, test = context.frozen(network, stream.test, name, on_features)
    return replace(stream, train=context.samples, test=test), context


def _feature_cache_name(
    config: RunConfig, configured: ConfiguredMethod, dataset: Dataset, context: ExecutionContext
) -> str:
    """Return the cache's name for frozen features: a checksum of all that decides their bits."""
    recorded = recorded_settings(config, configured, None)
    settings = sorted((name, value) for name, value in recorded.items() if name in FEATURE_SETTINGS)
    onnx = (version("onnxruntime"),) if context.prefers_onnx else ()
    machine = torch.__version__, context.device.type, torch.get_num_threads(), *onnx
    decisive = dataset.fingerprint, dataset.transform, configured.method.final_relu, settings, machine
    return f"features-{checksum(repr(decisive).encode(), 16)}"


def _configured_methods(config: RunConfig) -> tuple[ConfiguredMethod, ConfiguredMethod | None]:
    """Return the run's method, and its branch if there is one."""
    configured = configure(config.method, config.profile, config.training, config.options, config.increments)
    return configured, _configured_branch(config, config.branch, configured) if config.branch else None


def _configured_branch(config: RunConfig, name: str, configured: ConfiguredMethod) -> ConfiguredMethod:
    """Return the method that learns each task from the models of the run's own, with those of the options it has."""
    known = find_recipe(name).options
    options = {option: value for option, value in config.options.items() if option in known}
    branch = configure(name, config.profile, config.training, options, config.increments)
    if branch.folder in {*configured.method.scorers, *RESERVED}:
        raise UserError(f"branch: another part of the run is called {branch.folder!r}; give the method another name")
    _refuse_other_kinds(branch, configured)
    return branch


def _refuse_other_kinds(branch: ConfiguredMethod, chain: ConfiguredMethod) -> None:
    """Raise UserError if the models of `chain` lack the network, head or scorer that `branch` needs."""
    methods = branch.method, chain.method
    heads = {(type(one.head(1)), one.final_relu) for one in methods}
    scorers = {type(one.scorers[MAIN]()) for one in methods}
    networks = {one.branches for one in methods}
    for kind, found in (("network", networks), ("head", heads), ("scorer", scorers)):
        if len(found) > 1:
            other = f"branch: {branch.name} has another kind of {kind} than {chain.name}"
            raise UserError(f"{other}, so it can't go on from its models; name another method")


def _start_devices(config: RunConfig) -> AnyFabric:
    """Start the processes. On "auto" take a GPU if there is one; never Apple's, which lacks float64 and is untested."""
    device = ("cuda" if torch.cuda.is_available() else "cpu") if config.device == "auto" else config.device
    mixed = config.precision if config.precision in ("bf16-mixed", "16-mixed") else None
    fabric = launch(device, config.devices, config.nodes, mixed)
    use_threads(config.threads)  # again, since launching changes the number
    if device == "cuda":
        torch.set_float32_matmul_precision("high" if config.precision == "tf32-true" else "highest")
    return fabric


def _execution_context(
    config: RunConfig, fabric: AnyFabric, train: Samples, transform: Transform, init: Pretrained | None
) -> ExecutionContext:
    return ExecutionContext(
        fabric,
        train,
        transform,
        Randomness(config.seed),
        config.backbone,
        config.norm,
        dtype=torch.float64 if config.precision == "64-true" else torch.float32,
        init=init,
        accumulate=config.accumulate,
        compiler="inductor" if config.compile else None,
    )


def memory_budget(settings: MemorySettings, method: Method, classes: int) -> MemoryBudget:
    """Return the rule for the number of exemplars that the settings ask for, and the method uses."""
    if method.memory == "none":
        return NoBudget()
    if method.memory == "all":
        return UnlimitedBudget()
    if settings.memory_per_class:
        return GrowingBudget(settings.memory_per_class)
    if settings.memory_mb:
        return MegabyteBudget(settings.memory_mb)
    total = 20 * classes if settings.memory is None else settings.memory
    if total < classes:
        raise UserError(f"memory: {total} is less than one exemplar for each of {classes} classes; give at least that")
    return FixedBudget(total)


def settings_without_data(config: RunConfig) -> tuple[ConfiguredMethod, dict[str, Any]]:
    """Return the method, and the settings that its record will state, as far as they are known without the data."""
    config = _with_weights_settings(config)
    configured, branch = _configured_methods(config)
    return configured, json.loads(json.dumps(recorded_settings(config, configured, branch)))


def expected_record(config: RunConfig, like: Record) -> tuple[ConfiguredMethod, Record]:
    """Return the method, and the record that a run would start with if its data are those of the record `like`."""
    configured, settings = settings_without_data(config)
    order, sizes = _expected_classes(config, like)
    budget = recorded_budget(memory_budget(config, configured.method, sum(sizes)))
    stated = ["data_fingerprint", "stream_fingerprint"]
    same = {name: like.config[name] for name in stated if name in like.config}
    settings |= {"memory": budget, **same}
    return configured, like.model_copy(update={"config": settings, "class_order": order, "task_sizes": [*sizes]})


def _expected_classes(config: RunConfig, like: Record) -> tuple[list[int], Sequence[int]]:
    """Return the class order and the task sizes of a run on the data of a record; the data decide those of a stream."""
    if config.stream:
        return like.class_order, like.task_sizes
    names = dict(zip(like.class_order, like.class_names, strict=False))
    all_named = len(names) == len(like.class_order)  # else some classes stay out, and their names are not known
    order = (
        chosen_order(config, [names[label] for label in range(len(names))], config.seed)
        if all_named
        else like.class_order
    )
    return order, chosen_sizes(config, len(like.class_order))
