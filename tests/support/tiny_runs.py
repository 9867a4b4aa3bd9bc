"""Runs that take no time; what `ssil.testing.small_stream` offers, under the names that tests use."""

from torch import Tensor

from ssil.core.samples import Samples
from ssil.learning.execution import ExecutionContext
from ssil.testing.small_stream import StopAfter, backbone, config, patterns, tensors, without_costs

__all__ = ["Stopper", "backbone", "config", "patterns", "preprocessed", "tensors", "timeless"]

Stopper = StopAfter
timeless = without_costs


def preprocessed(context: ExecutionContext, indices: Tensor, samples: Samples | None = None) -> Tensor:
    """Images under the test transform; training images, unless other samples are given."""
    return context.transform.test((samples or context.samples).images.fetch(indices), context.dtype)
