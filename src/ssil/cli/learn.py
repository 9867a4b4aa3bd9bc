"""`ssil learn`: a classifier that keeps learning."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from ssil.classifier.classifier_settings import ModelSettings, make_settings
from ssil.cli.flags import FlagStyle, parsed, with_flags
from ssil.cli.terminal import Json, Trust

STYLE = FlagStyle({str: "STR", float: "FLOAT", int: "INT"}, default_in_text=True, negatives=False)

app = App(
    name="learn",
    help_epilogue="""IMAGES is a folder with a sub-folder a class, or a .csv or .parquet manifest.
MODEL is made by the first call; later ones add the new classes and keep the
old. More pictures of known classes are welcome too.

Of a new class a fifth of the pictures, at most ten, is set aside as a quiz and
never trained on, if it has five or more: what an update does to old and new
classes is read off them. With --max-drop an update that costs the old classes
more is not published (exit code 3). Pictures that IMAGES itself sets aside for
testing (a folder test/ beside train/) are not learnt.

A version keeps --memory pictures in all, as files in MODEL/pictures; those of
earlier versions stay there until `ssil prune`. A picture that comes again under
another class belongs to that class from then on.

Examples:
  ssil learn birds photos/first-week
  ssil learn birds photos/second-week --max-drop 5 --html update.html
  ssil predict birds somebody.jpg""",
)


@app.default
@with_flags(ModelSettings, before={"init": "freeze", "minutes": "epochs"}, style=STYLE)
def learn(
    model: Annotated[Path, Parameter(help="the model's directory")],
    images: Annotated[str, Parameter(help="images of one class or more")],
    /,
    *,
    init: Annotated[str | None, Parameter(help="first weights: a .safetensors file, or a name on the hub")] = None,
    minutes: Annotated[float | None, Parameter(help="train for about N minutes, instead of N epochs")] = None,
    max_drop: Annotated[float | None, Parameter(help="points that the old classes may lose together")] = None,
    max_class_drop: Annotated[float | None, Parameter(help="points that any old class may lose")] = None,
    html: Annotated[Path | None, Parameter(help="write what the update has changed as a page, FILE.html")] = None,
    trust: Trust = None,
    json: Json = False,
    **flags: Any,
) -> None:
    """Learn new classes, or more of known ones, and keep the old."""
    values = parsed(ModelSettings, flags)
    given = make_settings(values).model_dump(include=set(values))
    from ssil.classifier.learn_command import Limits  # imports torch, which `ssil learn --help` need not
    from ssil.cli.classroom import teach

    teach(model, images, given, Limits(max_drop, max_class_drop), init, minutes, json, html, trust or ())
