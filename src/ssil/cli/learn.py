"""`ssil learn`: a classifier that keeps learning."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from ssil.classifier.classifier_settings import (
    DEFAULT_METHOD,
    DEFAULT_VIEWS,
    DEFAULT_WEIGHTS,
    ClassifierSettings,
    make_settings,
)
from ssil.cli.flags import FlagStyle, parsed, with_flags
from ssil.cli.interrupts import Interrupts
from ssil.cli.progress import progress_display
from ssil.cli.terminal import (
    Json,
    Model,
    Trust,
    check_output,
    console,
    json_line,
    print_remarks,
    printable,
)
from ssil.cli.update_lines import update_lines
from ssil.core.model_layout import PAGE

if TYPE_CHECKING:
    from ssil.classifier.model_directory import ModelVersion
    from ssil.classifier.update_report import UpdateReport
    from ssil.learning.task import Observer, Progress, ProgressReport

DEFAULTS = {
    "backbone": "that of the weights",
    "image_size": "that of the weights",
    "method": DEFAULT_METHOD,
    "views": str(DEFAULT_VIEWS),
}
"""What `ssil learn` uses where the user names no weights."""
STYLE = FlagStyle({str: "STR", float: "FLOAT", int: "INT"}, default_in_text=True, negatives=False, defaults=DEFAULTS)
LISTED_BEFORE = {
    "backbone": "flip",
    "image_size": "flip",
    "grey": "flip",
    "views": "flip",
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
3), but kept for `ssil accept`. Images that IMAGES itself reserves for testing
(a folder test/ beside train/) are not learnt. With --test FOLDER, or a folder
named by `ssil exam`, the update is judged by your own test images too, and
--max-drop goes by these.

A version keeps --memory images in all, as files in MODEL/pictures; those of
earlier versions stay there until `ssil prune`. Methods that train keep old
images to train on again; slda, ncm, fecam and ranpac keep the hold-out set
alone. With --memory 0 they keep no image, and no accuracy can be measured.

An image that arrives again is not learnt twice. Under another class it belongs
to that class from then on; slda and its like still count it for the first too.

In the end it says what would help: images that are probably in the wrong class
or in two, blurred and dark ones, classes that look like one or need images. The
page MODEL/update.html shows them all, for as long as it is the last update;
--html FILE writes it elsewhere, --json lists all and writes none.

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
    minutes: Annotated[float | None, Parameter(help="be done in about N minutes, reading and export included")] = None,
    max_drop: Annotated[float | None, Parameter(help="points that the old classes may lose together")] = None,
    max_class_drop: Annotated[float | None, Parameter(help="points that any old class may lose")] = None,
    test: Annotated[
        Path | None, Parameter(help="judge the update by the images in this folder, see `ssil exam`")
    ] = None,
    html: Annotated[Path | None, Parameter(help="write what the update has changed as a page, FILE.html")] = None,
    trust: Trust = None,
    json: Json = False,
    **flags: Any,
) -> None:
    """Learn new classes, or more images of known ones, and keep the old."""
    began = time.monotonic()
    values = parsed(ClassifierSettings, flags)
    given = make_settings(values).model_dump(include=set(values))
    if html:
        check_output("html", html)
    from ssil.classifier.publish_update import (  # imports torch, which `ssil learn --help` need not
        Limits,
        RefusedUpdateError,
        publish_update,
    )
    from ssil.learning.execution import keep_freed_memory

    keep_freed_memory()
    try:
        with _progress(silent=json) as (on_progress, observer):
            published = publish_update(
                model,
                images,
                given,
                Limits(max_drop, max_class_drop),
                init=init,
                scratch=scratch,
                minutes=minutes,
                began=began,
                test=test,
                trusted=trust or (),
                on_progress=on_progress,
                observer=observer,
            )
    except RefusedUpdateError as refused:
        _tell(refused.report, json, html, model)
        raise
    _tell(published.report, json, html, model)
    if not json:
        _print_place(model, published.version)


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


def _tell(report: "UpdateReport", json: bool, html: Path | None, model: Path) -> None:
    """Print a report, or its JSON, and write its page: where the user wants it, or else into the model directory."""
    print_remarks(report.remarks, sys.stderr if json else sys.stdout)
    if json:
        from ssil.classifier.advice.sentences import advice_facts

        advice = advice_facts(report.advice) if report.advice else None
        json_line(version=report.number, refused=report.refused or None, **report.entry, advice=advice)
    else:
        screen = console()
        for line in update_lines(report):
            screen.print(line, markup=False)
    if html or not json:
        from ssil.classifier.update_page import write_update_page

        page = html or model / PAGE
        write_update_page(page, report)
        print(f"all of it, with the photos: open {printable(page)} in a browser", file=sys.stderr if json else None)


def _print_place(model: Path, version: "ModelVersion") -> None:
    """Print what the model can't do, and where it is."""
    screen = console()
    if version.onnx_problem:
        screen.print(f"no model.onnx, so that predictions load PyTorch: {version.onnx_problem}", markup=False)
    screen.print(f"the model is in {model}; to try it: ssil predict {model} PHOTO", markup=False)
