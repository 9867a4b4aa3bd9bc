"""ONNX Runtime on the CPU: sessions, and batches as small as it likes them. Nothing here imports torch."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnxruntime import InferenceSession, SessionOptions

BATCH_PIXELS = 16 * 64 * 64
"""Pixels of a batch at most: with EfficientNet-Lite0, batches of one image are faster than larger ones."""
FATAL = 4
"""The level from which on ONNX Runtime writes to standard error; all else it raises."""


def cpu_session(content: bytes, threads: int) -> InferenceSession:
    """Return a session of an ONNX file, which must be trusted; ONNX Runtime raises errors of many types.

    Results don't depend on the number of threads. Waiting threads sleep: spinning, they would take twice the time of
    the processor while images are decoded beside them.
    """
    options = SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = FATAL
    return InferenceSession(content, options, providers=["CPUExecutionProvider"])


def run_in_batches(
    session: InferenceSession, outputs: Sequence[str], images: NDArray[Any], pixels: int
) -> list[NDArray[Any]]:
    """Return the named outputs for images of `pixels` pixels each; there must be one image or more."""
    size, name = max(1, BATCH_PIXELS // pixels), session.get_inputs()[0].name
    parts = [session.run([*outputs], {name: images[at : at + size]}) for at in range(0, len(images), size)]
    return [np.concatenate(column) for column in zip(*parts, strict=True)]
