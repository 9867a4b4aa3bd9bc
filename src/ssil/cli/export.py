"""`ssil export`: a model for other programs."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from ssil.cli.terminal import Trust, console
from ssil.core.errors import UserError

app = App(
    name="export",
    help_epilogue="""The file takes pictures of the model's size as uint8 (N, height, width, channels) under
the name `images`, and gives `scores` and `probabilities`. Normalisation and all corrections are inside.
Resizing is the caller's, and `ssil predict` does it so: the picture upright by its Exif tag, on white
where it is transparent; of that the centred square whose side is the part `centre` of the short side;
resized to `size` pixels a side, bilinear with antialiasing. Both are in the file's metadata, and so
are the class names, `class_names`, as a JSON list. Needs pip install 'ssil[onnx]'.

Examples:
  ssil export birds birds.onnx""",
)


@app.default
def export(
    model: Annotated[Path, Parameter(help="the model's directory")],
    out: Annotated[Path, Parameter(help="the file, OUT.onnx")],
    /,
    *,
    version: Annotated[int | None, Parameter(help="of the model (default: the current one)")] = None,
    trust: Trust = None,
) -> None:
    """Write a model as an ONNX file, for other programs."""
    from ssil.classifier.model_directory import ModelDirectory
    from ssil.classifier.onnx_export import export as write
    from ssil.data.assemble import transform  # brings torch

    found = ModelDirectory(model, trust or ()).load(version)
    known, settings, look = found.classifier, found.classifier.settings, found.classifier.settings.look()
    seen = {"size": str(look.size), "centre": str(look.centre)}
    metadata = {"method": settings.method, "version": str(found.number), **seen}
    try:
        write(known.snapshot, transform(look), look.size, look.channels, out, known.temperature, metadata)
    except OSError as error:
        raise UserError(f"out: {out} can't be written ({error.strerror}); give another") from None
    size = f"{look.size} x {look.size} x {look.channels}"
    console().print(f"{out}: version {found.number}, {found.classifier.classes.seen} classes, pictures of {size}")
