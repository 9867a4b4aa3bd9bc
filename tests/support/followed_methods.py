"""The trace of each method on the small stream, made once; what `ssil.testing.method_trace` offers, for tests."""

from functools import cache
from pathlib import Path
from typing import Any

from ssil.testing.method_trace import LossCall, TaskTrace, equal, scores, trace
from ssil.testing.method_trace import set_up as plan_for
from ssil.testing.method_trace import weights as copied
from ssil.testing.small_stream import IMAGES, SETTINGS

__all__ = ["IMAGES", "SETTINGS", "LossCall", "TaskTrace", "copied", "equal", "follow", "plan_for", "scores"]


@cache
def follow(name: str, dataset: Path, **options: Any) -> tuple[TaskTrace, ...]:
    """Learn the small stream with a method; a stream that was learnt before is not learnt again."""
    return trace(name, dataset, **options)
