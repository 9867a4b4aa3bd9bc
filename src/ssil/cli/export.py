"""`ssil export`: a model as an ONNX file."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from ssil.cli.terminal import Model, Trust, Version, check_output, console
from ssil.core.errors import UserError

app = App(
    name="export",
    help_epilogue="""The file takes images of the model's size as uint8 (N, height, width, channels)
under the name `images`, and returns `scores` and `probabilities`. Normalisation
and all corrections are inside. Needs pip install 'ssil[onnx]'.

The caller has to resize images. `ssil predict` does it like this: turn the
image upright by its Exif tag, put it on white where it is transparent, cut out
the centred square whose side is the fraction `centre` of the short side, resize
it to `size` pixels a side, bilinear with antialiasing. Both numbers are in the
file's metadata, and so are the class names, `class_names`, as a JSON list.

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
    from ssil.classifier.model_directory import ModelDirectory
    from ssil.classifier.onnx_export import export as write
    from ssil.data.assemble import make_transform  # imports torch

    found = ModelDirectory(model, trust or ()).load(version)
    known, settings = found.classifier, found.classifier.settings
    preprocessing = settings.preprocessing()
    size, channels = preprocessing.size, preprocessing.channels
    metadata = {
        "method": settings.method,
        "version": str(found.number),
        "size": str(size),
        "centre": str(preprocessing.centre),
    }
    try:
        write(known.snapshot, make_transform(preprocessing), size, channels, out, known.temperature, metadata)
    except OSError as error:
        raise UserError(f"out: {out} can't be written ({error.strerror}); give another") from None
    shape = f"{size} x {size} x {channels}"
    console().print(f"{out}: version {found.number}, {known.classes.seen} classes, images of {shape}", markup=False)
