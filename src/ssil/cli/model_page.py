"""What `--html` of `ssil learn` and `ssil inspect` writes."""

from importlib.util import find_spec
from pathlib import Path

from ssil.classifier.holdout import Marks
from ssil.classifier.model_directory import ModelVersion
from ssil.core.errors import UserError
from ssil.core.files import replacing


def needs_plotly() -> None:
    """Say what is missing before anything is done."""
    if not find_spec("plotly"):
        raise UserError("html: plotly is missing; install it with pip install 'ssil[report]'")


def write_page(path: Path, title: str, version: ModelVersion, after: Marks | None, before: Marks | None = None) -> None:
    """A version as a page."""
    from ssil.reporting.model_page import EvaluatedVersion, model_page

    try:
        with replacing(path) as file:
            file.write(model_page(title, EvaluatedVersion(version, after, before)).encode())
    except OSError as error:
        raise UserError(f"html: {path} can't be written ({error.strerror}); give another file") from None
