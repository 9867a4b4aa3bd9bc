"""`ssil learn`: a classifier that keeps learning."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from ssil.classifier.classifier_settings import DEFAULT_METHOD, DEFAULT_WEIGHTS, ClassifierSettings, make_settings
from ssil.cli.flags import FlagStyle, parsed, with_flags
from ssil.cli.interrupts import Interrupts
from ssil.cli.progress import progress_display
from ssil.cli.terminal import (
    Json,
    Model,
    Trust,
    check_output,
    console,
    duration,
    json_line,
    percent,
    print_remarks,
    require_plotly,
    table,
)

if TYPE_CHECKING:
    from ssil.classifier.publish_update import PublishedUpdate
    from ssil.classifier.update import Update
    from ssil.learning.task import Observer, Progress, ProgressReport

MAX_LISTED = 10
"""How many classes that got worse are printed."""

DEFAULTS = {"backbone": "that of the weights", "image_size": "that of the weights", "method": DEFAULT_METHOD}
"""What `ssil learn` uses where the user names no weights."""
STYLE = FlagStyle({str: "STR", float: "FLOAT", int: "INT"}, default_in_text=True, negatives=False, defaults=DEFAULTS)
LISTED_BEFORE = {
    "backbone": "flip",
    "image_size": "flip",
    "grey": "flip",
    "init": "epochs",
    "freeze": "epochs",
    "tune": "epochs",
    "scratch": "epochs",
    "minutes": "epochs",
}
"""Where the help's order differs from the order of the settings, which is that of model files."""

app = App(
    name="learn",
    help_epilogue="""IMAGES is a folder with one sub-folder per class, or a .csv or .parquet table.
MODEL is created by the first call; later ones add the new classes and keep the
old. More images of known classes are welcome too.

With no option, efficientnet_lite0 (trained on ImageNet) computes features of
each image once, and slda adds them up: an update takes seconds, and needs no
old image. For other networks and weights see --init, --tune and --scratch.

Of a new class with five or more images one in five, at most ten, goes into the
hold-out set: what an update does to old and new classes is measured on images
that are not learnt. (slda and its like add them up too, after that.) With
--max-drop an update that costs the old classes more is not published (exit code
3). Images that IMAGES itself reserves for testing (a folder test/ beside
train/) are not learnt.

A version keeps --memory images in all, as files in MODEL/pictures; those of
earlier versions stay there until `ssil prune`. Methods that train keep old
images to train on again; slda, ncm, fecam and ranpac keep the hold-out set
alone. With --memory 0 they keep no image, and no accuracy can be measured.

An image that arrives again is not learnt twice. Under another class it belongs
to that class from then on; slda and its like still count it for the first too.

Examples:
  ssil learn birds photos/first-week
  ssil learn birds photos/second-week --max-drop 5 --html update.html
  ssil predict birds somebody.jpg""",
)


@app.default
@with_flags(ClassifierSettings, before=LISTED_BEFORE, style=STYLE)
def learn(
    model: Model,
    images: Annotated[str, Parameter(help="images of one class or more")],
    /,
    *,
    init: Annotated[
        str | None,
        Parameter(
            help="first weights: a name of `ssil weights`, a .safetensors file, or a name on the hub "
            f"(default: {DEFAULT_WEIGHTS}, with --freeze)"
        ),
    ] = None,
    scratch: Annotated[
        bool, Parameter(negative="", show_default=False, help="train from random weights: resnet18, 64 pixels, eeil")
    ] = False,
    minutes: Annotated[float | None, Parameter(help="train for about N minutes, instead of N epochs")] = None,
    max_drop: Annotated[float | None, Parameter(help="points that the old classes may lose together")] = None,
    max_class_drop: Annotated[float | None, Parameter(help="points that any old class may lose")] = None,
    html: Annotated[Path | None, Parameter(help="write what the update has changed as a page, FILE.html")] = None,
    trust: Trust = None,
    json: Json = False,
    **flags: Any,
) -> None:
    """Learn new classes, or more images of known ones, and keep the old."""
    values = parsed(ClassifierSettings, flags)
    given = make_settings(values).model_dump(include=set(values))
    if html:
        require_plotly("html")
        check_output("html", html)
    from ssil.classifier.publish_update import (  # imports torch, which `ssil learn --help` need not
        Limits,
        publish_update,
    )
    from ssil.learning.execution import keep_freed_memory

    keep_freed_memory()
    with _progress(silent=json) as (on_progress, observer):
        published = publish_update(
            model,
            images,
            given,
            Limits(max_drop, max_class_drop),
            init=init,
            scratch=scratch,
            minutes=minutes,
            trusted=trust or (),
            on_progress=on_progress,
            observer=observer,
        )
    print_remarks(published.remarks, sys.stderr if json else sys.stdout)
    if json:
        json_line(version=published.version.number, **published.version.history[-1])
    else:
        _print_summary(model, published)
    if html:
        from ssil.reporting.model_page import write_model_page

        update = published.update
        write_model_page(html, model.resolve().name, published.version, update.after, update.before)


@contextmanager
def _progress(silent: bool) -> Iterator[tuple[Callable[[int, int], None], "Observer"]]:
    """Yield the callbacks of reading images and of training, which move a bar and stop at Ctrl-C."""

    def on_progress(done: int, files: int) -> None:
        display.update("reading the images", done, files)
        stop_if_interrupted()

    def observer(_: "Progress", report: "ProgressReport") -> None:
        display.update("learning", report.done, 1.0)
        stop_if_interrupted()

    def stop_if_interrupted() -> None:
        if interrupts.requested:
            raise KeyboardInterrupt("the model is as it was")

    with Interrupts() as interrupts, progress_display(silent) as display:
        interrupts.training = True
        yield on_progress, observer


def _print_summary(model: Path, published: "PublishedUpdate") -> None:
    screen, number, entry = console(), published.version.number, published.version.history[-1]
    news = f"{len(entry['new'])} new class(es)" + (f", more of {len(entry['more'])}" if entry["more"] else "")
    screen.print(f"version {number}: {news}, {entry['pictures']} images, {duration(entry['seconds'])}")
    screen.print(_learner(published.version.classifier.settings), markup=False)
    accuracies = table("hold-out accuracy", "before", "after")
    accuracies.add_row("old classes", percent(entry["old_before"]), percent(entry["old_after"]))
    accuracies.add_row("new classes", "", percent(entry["new_after"]))
    screen.print(accuracies)
    _print_drops(published.update)
    if entry["score_gap"] is not None:
        lean = "new" if entry["score_gap"] > 0 else "old"
        screen.print(f"scores lean to the {lean} classes by {abs(entry['score_gap']):.2f} deviations;", end=" ")
    if entry["calibration_error"] is not None:
        plain = f" ({entry['calibration_error_plain']:.0f} before it was adjusted)" if entry["temperature"] != 1 else ""
        screen.print(f"confidence is off by {entry['calibration_error']:.0f} points on average{plain}")
    if published.version.onnx_problem:
        screen.print(f"no model.onnx, so that predictions load PyTorch: {published.version.onnx_problem}", markup=False)
    if not any(published.version.classifier.holdout):
        screen.print("no image is held out, so neither accuracies nor what is unknown can be measured")
    if entry["unknown_below"] is not None:
        lost = published.version.classifier.settings.unknown_loss
        screen.print(
            f"images that seem to be of no known class are called unknown ({lost:g} % of the hold-out images are)"
        )
    screen.print(f"kept in {model} (see: ssil inspect {model}; ssil predict {model} IMAGE)", markup=False)


def _learner(settings: ClassifierSettings) -> str:
    """Return a line that names the network and the method, and the old images that it needs."""
    needed = settings.configured().method.requirements()
    network = f"{settings.backbone} at {settings.image_size} pixels"
    how = f"on features of {network}, which stays as it is" if settings.freeze else f"trains {network}"
    old = "no old image is needed" if needed.memory == "none" else "old images are kept to train on again"
    return f"{settings.method} {how}; {old}"


def _print_drops(update: "Update") -> None:
    from ssil.classifier.holdout import accuracy_drops

    drops = accuracy_drops(update.before, update.after, update.known_classes) if update.before and update.after else {}
    if drops:
        named = ", ".join(f"{name} (-{drop:.0f})" for name, drop in list(drops.items())[:MAX_LISTED])
        console().print(f"got worse: {named}", markup=False)
