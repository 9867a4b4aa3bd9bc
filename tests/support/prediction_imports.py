"""What a command that predicts by `model.onnx` must not import: it is for training and reporting alone."""

from collections.abc import Sequence

FORBIDDEN = (
    "ssil.benchmark",
    "ssil.reporting",
    "ssil.reproduction",
    "ssil.data.load",
    "ssil.classifier.update",
    "ssil.classifier.holdout",
    "ssil.classifier.feature_extraction",
    "ssil.classifier.edits",
    "ssil.classifier.publish_update",
    "ssil.classifier.model_directory",
    "ssil.classifier.onnx_export",
    "ssil.learning",
    "ssil.nn",
    "ssil.methods",
    "torch",
    "ssil.classifier.estimator",
    "ssil.cli.learn",
    "lightning_fabric",
    "sympy",
    "scipy",
    "pyarrow",
    "sklearn",
    "matplotlib",
    "plotly",
)


def forbidden(loaded: Sequence[str]) -> list[str]:
    """The modules among those loaded that a prediction must not import."""
    return [name for name in loaded if name in FORBIDDEN or name.startswith(tuple(f"{one}." for one in FORBIDDEN))]
