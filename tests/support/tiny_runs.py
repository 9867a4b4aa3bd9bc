"""Runs that take no time; what `ssil.testing.small_stream` offers, under the names that tests use."""

from pathlib import Path

from torch import Tensor

from ssil.core.samples import Samples
from ssil.learning.execution import ExecutionContext
from ssil.testing.small_stream import StopAfter, backbone, config, patterns, tensors, without_costs

__all__ = ["Stopper", "backbone", "command", "config", "patterns", "preprocessed", "tensors", "timeless"]

Stopper = StopAfter
timeless = without_costs


def preprocessed(context: ExecutionContext, indices: Tensor, samples: Samples | None = None) -> Tensor:
    """Images under the test transform; training images, unless other samples are given."""
    return context.transform.test((samples or context.samples).images.fetch(indices), context.dtype)


def command(folder: Path, method: str) -> list[str]:
    """Return the arguments of a run of three tasks that takes no time, on data that is written to `folder`."""
    data = patterns(folder / "patterns.npz", [5] * 6)
    fixed = f"--backbone {__file__}:backbone --threads 1 --device cpu --tasks 3 --epochs 2 --batch 4 --memory 8"
    return ["run", "--dataset", str(data), *fixed.split(), "--method", method]
