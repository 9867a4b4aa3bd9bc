"""Nothing is told to anybody: libraries that would report their use are told not to, before they are imported."""

import os

VARIABLE = "ORT_DISABLE_TELEMETRY"
"""ONNX Runtime looks at it when it is loaded: without it, version 1.31 keeps a number of the device and a database of
events in the user's cache, and uploads them."""


def disable_telemetry() -> None:
    """Let no library of this process, or of processes that it starts, report its use; a value of the user's stays."""
    os.environ.setdefault(VARIABLE, "1")
