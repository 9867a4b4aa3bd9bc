"""`ssil export`: a model as an ONNX file."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from ssil.cli.terminal import Model, Trust, Version, check_output, console
from ssil.core.errors import UserError

if TYPE_CHECKING:
    from ssil.classifier.exported_model import ExportedVersion
    from ssil.classifier.int8_export import Comparison

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

With --int8 its convolutions compute in 8-bit integers: a smaller file, faster
on processors that have instructions for it. The numbers' ranges are measured
on images that the model keeps (exemplars, else the hold-out set). Printed are
the accuracies of both on the hold-out set, and on how many of its images they
differ. A method that learns its hold-out images in the end is compared as it
was before, and where no exemplars are kept, each half of the set is tested with
ranges of the other half: no image tests what was chosen by it.

Examples:
  ssil export birds birds.onnx
  ssil export birds small.onnx --int8""",
)


@app.default
def export(
    model: Model,
    out: Annotated[Path, Parameter(help="the file, OUT.onnx")],
    /,
    *,
    version: Version = None,
    trust: Trust = None,
    int8: Annotated[
        bool, Parameter(negative="", help="convolutions in 8-bit integers, calibrated on kept images")
    ] = False,
) -> None:
    """Write a model as an ONNX file, for other programs."""
    check_output("out", out)
    from ssil.classifier.exported_model import read_exported
    from ssil.core.files import write_atomic

    exported = read_exported(model, version) or _export_anew(model, version, trust or ())
    lines = list[str]()
    if int8:
        exported, lines = _in_int8(exported, model, trust or ())
    try:
        write_atomic(out, exported.content)
    except OSError as error:
        raise UserError(f"out: {out} can't be written ({error.strerror}); give another") from None
    size, channels = exported.preprocessing.size, exported.preprocessing.channels
    shape = f"{size} x {size} x {channels}"
    classes = len(exported.class_names)
    lines.insert(0, f"{out}: version {exported.number}, {classes} classes, images of {shape}")
    console().print("\n".join(lines), markup=False)


def _in_int8(exported: "ExportedVersion", model: Path, trusted: Sequence[str]) -> tuple["ExportedVersion", list[str]]:
    """Return the version in 8-bit integers, and lines about the accuracy that it costs."""
    from ssil.classifier.int8_export import quantise  # imports torch
    from ssil.classifier.model_directory import ModelDirectory

    content, comparison = quantise(exported.content, ModelDirectory(model, trusted).load(exported.number).classifier)
    return exported._replace(content=content), [*_comparison_lines(comparison)]


def _comparison_lines(found: "Comparison | None") -> Iterator[str]:
    """Yield what 8-bit integers change on the hold-out set."""
    if found is None:
        yield "hold-out accuracy: not measured, as the model has no hold-out set, or one image and no exemplars"
        return
    before, after = (100 * count / found.images for count in (found.before, found.after))
    yield f"hold-out accuracy: {before:.1f} % before, {after:.1f} % in 8-bit integers"
    differ = f"{found.lost} now wrong, {found.gained} now right"
    yield f"same class for {found.same} of {found.images} images, on which neither was fitted; {differ}"


def _export_anew(model: Path, version: int | None, trusted: Sequence[str]) -> "ExportedVersion":
    """Return what a version without `model.onnx` would hold; raise UserError if it can't be exported."""
    from ssil.classifier.exported_model import ExportedVersion
    from ssil.classifier.model_directory import ModelDirectory
    from ssil.classifier.onnx_export import export_classifier  # imports torch

    found = ModelDirectory(model, trusted).load(version)
    content, settings = export_classifier(found.classifier, found.number), found.classifier.settings
    names, threshold = found.classifier.classes.names, found.classifier.threshold
    return ExportedVersion(found.number, names, settings.preprocessing(), model, content, threshold)
