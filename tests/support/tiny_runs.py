"""Runs that take no time; what `ssil.testing.small_stream` offers, under the names that tests use."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ssil.benchmark.config import RunConfig
from ssil.benchmark.record import Record
from ssil.benchmark.runner import run
from ssil.core.samples import Samples
from ssil.learning.execution import ExecutionContext
from ssil.testing import small_stream
from ssil.testing.small_stream import StopAfter, backbone, patterns, tensors, without_costs

__all__ = ["Stopper", "backbone", "command", "config", "patterns", "preprocessed", "resumed", "tensors", "timeless"]

Stopper = StopAfter
timeless = without_costs

OPTIONS: dict[str, dict[str, Any]] = {"ranpac": {"width": 32}}
"""Options of methods whose defaults take seconds to learn; other methods have their defaults."""


def config(dataset: Path, **settings: Any) -> RunConfig:
    """Return the configuration of a run on the small stream; options that are not given are those of `OPTIONS`."""
    return small_stream.config(dataset, **{"options": OPTIONS.get(settings.get("method", ""), {}), **settings})


def preprocessed(context: ExecutionContext, indices: Tensor, samples: Samples | None = None) -> Tensor:
    """Images under the test transform; training images, unless other samples are given."""
    return context.transform.test((samples or context.samples).images.fetch(indices), context.dtype)


def command(folder: Path, method: str) -> list[str]:
    """Return the arguments of a run of three tasks that takes no time, on data that is written to `folder`."""
    data = patterns(folder / "patterns.npz", [5] * 6)
    fixed = f"--backbone {__file__}:backbone --threads 1 --device cpu --tasks 3 --epochs 2 --batch 4 --memory 8"
    return ["run", "--dataset", str(data), *fixed.split(), "--method", method]


def resumed(dataset: Path, folder: Path, steps: int, **settings: Any) -> Record:
    """Return the record of a run; assert that one that is stopped after so many steps, again and again, equals it."""
    whole, stops, parts = run(config(dataset, **settings, out=folder / "whole")), 0, None
    while parts is None:
        try:
            parts = run(config(dataset, **settings, out=folder / "parts"), Stopper(steps))
        except KeyboardInterrupt:
            stops += 1
    assert stops
    assert timeless(parts) == timeless(whole)
    ours, theirs = tensors(folder / "whole"), tensors(folder / "parts")
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    return whole
