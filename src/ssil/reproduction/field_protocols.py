"""The protocols of published tables on CIFAR-100 and ImageNet-100, by name, with the accuracies that were published.

They are those of a survey (arXiv 2302.03648) and of PyCIL, the code that it used. A name states the data set, the
classes of the first task beyond equal tasks (b0: none, b50: 50), and the classes of each other task.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ssil.benchmark.config import RunConfig, make_config, override
from ssil.core.errors import UserError, did_you_mean
from ssil.learning.schedule import scale_epochs

SURVEY: Final = "arXiv 2302.03648"
SOURCES: Final = {
    "survey": f"{SURVEY}, average and last",
    "notes": "the range of averages over several published tables, as the project has noted it; these are not listed",
}

SCHEDULE: Final[dict[str, Any]] = {
    "epochs": 200,
    "milestones": (60, 120, 170),
    "weight_decay": 5e-4,
    "later_epochs": 170,
    "later_milestones": (80, 120),
    "later_weight_decay": 2e-4,
    "lr": 0.1,
    "decay": 0.1,
    "lr_by_task": False,
    "batch": 128,
    "momentum": 0.9,
}
"""The survey's schedule, for all methods but those in `OWN`."""

PYCIL_MILESTONES: Final = (60, 100, 140)
"""Milestones of 170 epochs that several methods have in PyCIL."""

OWN: Final[dict[str, dict[str, Any]]] = {
    "ft": {"later_epochs": 70, "later_milestones": (30, 50)},
    "icarl": {"options": {"distillation": "gkd"}},
    "wa": {"later_milestones": PYCIL_MILESTONES, "options": {"weight_decay_by_task": False, "weight_clipping": False}},
    "bic": {
        "epochs": 170,
        "milestones": PYCIL_MILESTONES,
        "weight_decay": 2e-4,
        "later_milestones": PYCIL_MILESTONES,
        "options": {"bias_epochs": 170, "bias_lr": 0.1, "bias_momentum": 0.9},
    },
    "podnet": {
        "epochs": 160,
        "milestones": (),
        "later_epochs": 160,
        "later_milestones": (),
        "later_weight_decay": 5e-4,
        "options": {"spatial": 5.0, "flat": 1.0, "balanced_epochs": 20, "balanced_lr": 0.005},
    },
    "der": {"later_milestones": (80, 120, 150)},
    "memo": {"later_milestones": (80, 120, 150)},
    "foster": {
        "milestones": (),
        "later_milestones": (),
        "later_weight_decay": 5e-4,
        "options": {"compression_epochs": 130},
    },
}
"""What differs for single methods, as in PyCIL, whose `replay` is `ft` here. PODNet and FOSTER anneal their rate, which
needs no milestones. docs/protocols.md lists what differs from PyCIL all the same."""

STREAM: Final[dict[str, Any]] = {"class_order": "numpy:1993", "brightness": 63 / 255}
MEMORY: Final[dict[str, Any]] = {"memory": 2000, "selection": "herding"}
CIFAR: Final[dict[str, Any]] = {"dataset": "cifar100", "backbone": "resnet32", **STREAM, **MEMORY}
IMAGENET: Final[dict[str, Any]] = {"dataset": "imagenet100", "backbone": "resnet18", **STREAM, **MEMORY}


@dataclass(frozen=True)
class PublishedBand:
    """Average incremental accuracies of a method in published tables, in percent.

    `survey` has the average and the last accuracy in the survey's table, if it is known.
    """

    method: str
    low: float
    high: float
    survey: tuple[float, float] | None = None

    @property
    def source(self) -> str:
        """Where the numbers are from: keys of `SOURCES`."""
        known = {"survey": self.survey is not None, "notes": self.low < self.high}
        return ", ".join(name for name, is_source in known.items() if is_source)


@dataclass(frozen=True)
class FieldProtocol:
    """A stream with data, memory, network and schedule."""

    name: str
    title: str
    settings: Mapping[str, Any]
    published: tuple[PublishedBand, ...] = field(default=())

    def run_settings(self, method: str) -> dict[str, Any]:
        """Return the settings of a run with a method; of several that share a training, the first one counts."""
        return {**self.settings, **SCHEDULE, **OWN.get(method.partition(",")[0].strip(), {})}


B0_10: Final = (
    PublishedBand("finetune", 26.3, 26.3, (26.3, 9.1)),
    PublishedBand("replay", 58.0, 60.0, (59.3, 41.0)),
    PublishedBand("icarl", 60.0, 65.5, (64.4, 49.5)),
    PublishedBand("eeil", 61.0, 63.0),
    PublishedBand("bic", 62.0, 66.0, (65.1, 50.8)),
    PublishedBand("wa", 64.0, 67.5, (67.1, 52.3)),
    PublishedBand("podnet", 55.0, 57.0, (55.2, 36.8)),
    PublishedBand("lucir", 57.0, 62.0),
    PublishedBand("der", 69.5, 71.5, (69.7, 58.6)),
    PublishedBand("foster", 66.0, 67.0, (66.5, 53.2)),
    PublishedBand("memo", 69.5, 70.5, (70.2, 58.5)),
)
"""For ten tasks of ten classes of CIFAR-100; names of methods that this package has are its own."""

PROTOCOLS: Final = {
    protocol.name: protocol
    for protocol in (
        FieldProtocol("cifar100-b0-5", "20 tasks of 5", {**CIFAR, "tasks": 20}),
        FieldProtocol("cifar100-b0-10", "10 tasks of 10", {**CIFAR, "tasks": 10}, B0_10),
        FieldProtocol("cifar100-b0-20", "5 tasks of 20", {**CIFAR, "tasks": 5}),
        FieldProtocol("cifar100-b50-10", "50, then 5 tasks of 10", {**CIFAR, "tasks": 5, "large_base": True}),
        FieldProtocol("imagenet100-b0-10", "10 tasks of 10", {**IMAGENET, "tasks": 10}),
    )
}


def find_protocol(name: str) -> FieldProtocol:
    """Return a protocol by its name; raise UserError if there is none.

    >>> find_protocol("cifar100-b50-10").run_settings("podnet")["epochs"]
    160
    """
    if name not in PROTOCOLS:
        hint = did_you_mean(name, PROTOCOLS, f"there are: {', '.join(PROTOCOLS)}")
        raise UserError(f"protocol: {name[:100]!r} is not known; {hint}")
    return PROTOCOLS[name]


def protocol_config(protocol: FieldProtocol, given: Mapping[str, Any]) -> RunConfig:
    """Return the configuration of a run by a protocol, with the settings that the user has `given` over it."""
    return make_config(protocol_settings(protocol, given))


def protocol_settings(protocol: FieldProtocol, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a run by a protocol, with those that the user has `given` over them.

    `epoch_scale` is a factor of the protocol's epochs; if `epochs` are given, all else of the schedule follows.
    """
    base = protocol.run_settings(str(given.get("method", "")))
    wanted = make_config({name: given[name] for name in ("epoch_scale", "epochs") if name in given})
    factor = wanted.epoch_scale or (wanted.epochs / base["epochs"] if wanted.epochs else 1)
    rest = {name: value for name, value in given.items() if name != "epoch_scale"}
    return override(_scaled(base, factor), rest)


def expanded(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with those of the protocol that they name under them, if they name one.

    >>> expanded({"protocol": "cifar100-b0-5", "method": "ft", "memory": 500})["tasks"]
    20
    """
    rest = dict(settings)
    name = rest.pop("protocol", None)
    return rest if name is None else protocol_settings(find_protocol(str(name)), rest)


def _scaled(settings: Mapping[str, Any], factor: float) -> dict[str, Any]:
    """Return settings with `factor` times the epochs, in the method's options too."""
    if factor == 1:
        return dict(settings)
    options = settings.get("options", {})
    whole = {name: value for name, value in settings.items() if name != "options"}
    scaled = scale_epochs({**whole, **options}, factor)
    return {name: scaled[name] for name in whole} | {"options": {name: scaled[name] for name in options}}


UNCOMPARED: Final = {"method", "options", "branch", "seed", "epoch_scale", "precision"}
"""Settings that a protocol leaves to its user, or that are compared by themselves."""
LENGTHS: Final = ("epochs", "later_epochs")


def deviations(protocol: FieldProtocol, config: RunConfig) -> list[str]:
    """Return how a run differs from the protocol: its length, and each other setting that decides its result.

    Milestones are compared with the protocol's, scaled to the run's epochs.
    """
    stated = protocol_config(protocol, {"method": config.method})
    lines = []
    if any(getattr(config, name) != getattr(stated, name) for name in LENGTHS):
        (first, later), (whole, whole_later) = ([getattr(one, name) for name in LENGTHS] for one in (config, stated))
        lines.append(f"{first} of {whole} epochs, {later} of {whole_later} in tasks after the first")
        stated = protocol_config(protocol, {"method": config.method, "epochs": config.epochs})
    compared = set(RunConfig.model_fields) - set(RunConfig.names(how=True)) - UNCOMPARED - {*LENGTHS}
    if stated.later_epochs != config.later_epochs:
        compared -= {"later_milestones"}
    changed = [name for name in sorted(compared) if getattr(config, name) != getattr(stated, name)]
    lines += [f"{name} {getattr(config, name)} (protocol: {getattr(stated, name)})" for name in changed]
    return lines + [
        f"{name} {value} (protocol: {stated.options.get(name, 'its default')})"
        for name, value in config.options.items()
        if stated.options.get(name) != value
    ]
