"""Class-incremental learning for image classifiers, after SS-IL (ICCV 2021)."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ssil.config import RunConfig
    from ssil.model.estimator import IncrementalClassifier
    from ssil.runs import run

__version__ = "0.1.0"
__all__ = ["IncrementalClassifier", "RunConfig", "__version__", "run"]


def __getattr__(name: str) -> Any:
    """Load the public names when they are asked for: `ssil --help` must not wait for torch."""
    if name == "RunConfig":
        from ssil.config import RunConfig

        return RunConfig
    if name == "run":
        from ssil.runs import run

        return run
    if name == "IncrementalClassifier":
        from ssil.model.estimator import IncrementalClassifier

        return IncrementalClassifier
    raise AttributeError(f"module 'ssil' has no attribute {name!r}")
