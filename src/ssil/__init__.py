"""Class-incremental learning for image classifiers, after SS-IL (ICCV 2021)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ssil.core import __version__
from ssil.core.cpu import bound_spinning
from ssil.core.telemetry import disable_telemetry

if TYPE_CHECKING:
    from ssil.benchmark.config import RunConfig
    from ssil.benchmark.runner import run
    from ssil.classifier.estimator import IncrementalClassifier
    from ssil.core.classes import ClassTable
    from ssil.learning import losses
    from ssil.learning.batches import Mixed, NewOnly, Replay
    from ssil.learning.method import Method, Phase, Stage, StoredValues, Term, cross_entropy, mean
    from ssil.learning.registry import register
    from ssil.learning.schedule import Training
    from ssil.learning.snapshot import MAIN, Scorer, Step, TaskState
    from ssil.nn.heads import CosineHead, LinearHead, ProxyHead
    from ssil.nn.network import Output
    from ssil.nn.resnet import Backbone, ConvNorm

bound_spinning()
disable_telemetry()

__all__ = [
    "MAIN",
    "Backbone",
    "ClassTable",
    "ConvNorm",
    "CosineHead",
    "IncrementalClassifier",
    "LinearHead",
    "Method",
    "Mixed",
    "NewOnly",
    "Output",
    "Phase",
    "ProxyHead",
    "Replay",
    "RunConfig",
    "Scorer",
    "Stage",
    "Step",
    "StoredValues",
    "TaskState",
    "Term",
    "Training",
    "__version__",
    "cross_entropy",
    "losses",
    "mean",
    "register",
    "run",
]

_HOMES = {
    "ssil.benchmark.config": ["RunConfig"],
    "ssil.benchmark.runner": ["run"],
    "ssil.classifier.estimator": ["IncrementalClassifier"],
    "ssil.core.classes": ["ClassTable"],
    "ssil.learning": ["losses"],
    "ssil.learning.batches": ["Mixed", "NewOnly", "Replay"],
    "ssil.learning.method": ["Method", "Phase", "Stage", "StoredValues", "Term", "cross_entropy", "mean"],
    "ssil.learning.registry": ["register"],
    "ssil.learning.schedule": ["Training"],
    "ssil.learning.snapshot": ["MAIN", "Scorer", "Step", "TaskState"],
    "ssil.nn.heads": ["CosineHead", "LinearHead", "ProxyHead"],
    "ssil.nn.network": ["Output"],
    "ssil.nn.resnet": ["Backbone", "ConvNorm"],
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `ssil --help` does not wait for torch."""
    if name not in _HOME:
        raise AttributeError(f"module 'ssil' has no attribute {name!r}")
    home = _HOME[name]
    return import_module(f"{home}.{name}") if name == "losses" else getattr(import_module(home), name)
