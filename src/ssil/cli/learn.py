"""`ssil learn`: a classifier that keeps learning."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from ssil.cli.terminal import Json, Trust

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
def learn(
    model: Annotated[Path, Parameter(help="the model's directory")],
    images: Annotated[str, Parameter(help="pictures of one class or more")],
    /,
    *,
    method: Annotated[str | None, Parameter(help="how classes are learnt, see `ssil methods` (default: eeil)")] = None,
    option: Annotated[
        list[str] | None, Parameter(metavar="NAME=VALUE", negative_iterable="", help="the method's own options")
    ] = None,
    memory: Annotated[int | None, Parameter(help="pictures to keep in all (default: 2000)")] = None,
    memory_mb: Annotated[float | None, Parameter(help="megabytes of pictures to keep, instead of a number")] = None,
    backbone: Annotated[str | None, Parameter(help="the network (default: resnet18)")] = None,
    image_size: Annotated[int | None, Parameter(help="pixels a side (default: 64)")] = None,
    grey: Annotated[bool | None, Parameter(negative="", help="see pictures without colour")] = None,
    flip: Annotated[bool | None, Parameter(help="whether mirrored pictures are as good (default: yes)")] = None,
    init: Annotated[str | None, Parameter(help="first weights: a .safetensors file, or a name on the hub")] = None,
    freeze: Annotated[
        bool | None, Parameter(negative="", help="learn only the head, on features of --init, computed once")
    ] = None,
    minutes: Annotated[float | None, Parameter(help="train for about so long, instead of so many epochs")] = None,
    epochs: Annotated[int | None, Parameter(help="of the first update (default: 30)")] = None,
    later_epochs: Annotated[int | None, Parameter(help="of each later update (default: 20)")] = None,
    batch: Annotated[int | None, Parameter(help="new pictures in a mini-batch (default: 32)")] = None,
    lr: Annotated[float | None, Parameter(help="learning rate (default: 0.05)")] = None,
    seed: Annotated[int | None, Parameter(help="of first weights, exemplars, batches (default: 0)")] = None,
    max_drop: Annotated[float | None, Parameter(help="points that the old classes may lose together")] = None,
    max_class_drop: Annotated[float | None, Parameter(help="points that any old class may lose")] = None,
    html: Annotated[Path | None, Parameter(help="write what the update has changed as a page, FILE.html")] = None,
    trust: Trust = None,
    json: Json = False,
) -> None:
    """Learn new classes, or more of known ones, and keep the old."""
    from ssil.classifier.learn_command import Limits
    from ssil.cli.classroom import teach  # brings torch
    from ssil.cli.flags import options

    asked: dict[str, Any] = {
        "method": method,
        "options": options(option) if option else None,
        "memory": memory,
        "memory_mb": memory_mb,
        "backbone": backbone,
        "image_size": image_size,
        "grey": grey,
        "flip": flip,
        "freeze": freeze,
        "epochs": epochs,
        "later_epochs": later_epochs,
        "batch": batch,
        "lr": lr,
        "seed": seed,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    teach(model, images, given, Limits(max_drop, max_class_drop), init, minutes, json, html, trust or ())
