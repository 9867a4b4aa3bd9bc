"""`ssil export`: a model as an ONNX file."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from ssil.cli.terminal import Model, Trust, Version, check_output, console
from ssil.core.errors import UserError

if TYPE_CHECKING:
    from ssil.classifier.exported_model import ExportedVersion

app = App(
    name="export",
    help_epilogue="""The file takes images of the model's size as uint8 (N, height, width, channels)
under the name `images`, and returns `scores` and `probabilities`. Normalisation
and all corrections are inside. It is the file model.onnx of the version, which
`ssil predict` runs; for a version without one it is made anew.

The caller has to resize images. `ssil predict` does it like this: turn the
image upright by its Exif tag, put it on white where it is transparent, cut out
the centred square whose side is the fraction `centre` of the short side, resize
it to `size` pixels a side, with antialiasing. These numbers and the kind of
`interpolation` are in the file's metadata (a `centre` of null stands for the
whole image, made square), and so are the class names, `class_names`, as a JSON
list.

Examples:
  ssil export birds birds.onnx""",
)


@app.default
def export(
    model: Model,
    out: Annotated[Path, Parameter(help="the file, OUT.onnx")],
    /,
    *,
    version: Version = None,
    trust: Trust = None,
) -> None:
    """Write a model as an ONNX file, for other programs."""
    check_output("out", out)
    from ssil.classifier.exported_model import read_exported
    from ssil.core.files import write_atomic

    exported = read_exported(model, version) or _export_anew(model, version, trust or ())
    try:
        write_atomic(out, exported.content)
    except OSError as error:
        raise UserError(f"out: {out} can't be written ({error.strerror}); give another") from None
    size, channels = exported.preprocessing.size, exported.preprocessing.channels
    shape = f"{size} x {size} x {channels}"
    classes = len(exported.class_names)
    console().print(f"{out}: version {exported.number}, {classes} classes, images of {shape}", markup=False)


def _export_anew(model: Path, version: int | None, trusted: Sequence[str]) -> "ExportedVersion":
    """Return what a version without `model.onnx` would hold; raise UserError if it can't be exported."""
    from ssil.classifier.exported_model import ExportedVersion
    from ssil.classifier.model_directory import ModelDirectory
    from ssil.classifier.onnx_export import export_classifier  # imports torch

    found = ModelDirectory(model, trusted).load(version)
    content, settings = export_classifier(found.classifier, found.number), found.classifier.settings
    names, threshold = found.classifier.classes.names, found.classifier.threshold
    return ExportedVersion(found.number, names, settings.preprocessing(), model, content, threshold)
