"""`ssil test`: how accurate a model is on images that it has not seen."""

import sys
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from ssil.cli.progress import counting
from ssil.cli.terminal import (
    Json,
    Model,
    Trust,
    Version,
    check_output,
    console,
    json_line,
    percent,
    plain,
    print_remarks,
    require_plotly,
    table,
)

if TYPE_CHECKING:
    from ssil.classifier.accuracy import ClassResult
    from ssil.classifier.folder_results import FolderResult

MAX_CLASSES, MAX_CONFUSIONS, MAX_NAMES = 30, 10, 8
"""Classes, pairs of classes and names that are printed at most; --json lists all."""

app = App(
    name="test",
    help_epilogue="""FOLDER has one sub-folder of images for each class, with the class's name. Use
images that were never learnt, best from another day or place than those that
were: the accuracy holds for images like these. Images that the model is known
to have learnt are left out.

The interval contains the accuracy on all images of this kind in 95 of 100 such
tests, if the images were taken one by one; photographs of the same thing from
the same minute count as one. An image is right if its class has the highest
probability, also where `ssil predict` calls it unknown.

Examples:
  ssil test birds photos/kept-for-testing
  ssil test birds photos/kept-for-testing --version 2
  ssil test birds photos/kept-for-testing --html test.html""",
)


@app.default
def run_test(
    model: Model,
    folder: Annotated[Path, Parameter(help="the test folder: images with one sub-folder per class")],
    /,
    *,
    version: Version = None,
    html: Annotated[Path | None, Parameter(help="also write a page, FILE.html")] = None,
    trust: Trust = None,
    json: Json = False,
) -> None:
    """Test a model by labelled images that it has not seen."""
    if html:
        require_plotly("html")
        check_output("html", html)
    from ssil.classifier.folder_results import run_folder_test  # imports numpy, which `ssil test --help` need not

    with counting("testing", json) as on_images:
        result = run_folder_test(model, folder, version, trust or (), on_images=on_images)
    print_remarks(result.remarks, sys.stderr if json else sys.stdout)
    if json:
        json_line(folder=str(folder), **_facts(result))
    else:
        _print(model, folder, result)
    if html:
        from ssil.reporting.folder_page import write_folder_page

        write_folder_page(html, model.resolve().name, folder, result)


def _facts(result: "FolderResult") -> dict[str, Any]:
    """Return a result as values of JSON."""
    return {
        "version": result.version,
        **_numbers(result.result()),
        "old": _numbers(result.result(result.names[: result.old])),
        "new": _numbers(result.result(result.names[result.old :])),
        "unknown": sum(image.unknown for image in result.images),
        "classes": [{"class": name, **_numbers(one)} for name, one in result.classes.items()],
        "confusions": [
            {"class": one.label, "taken_for": one.predicted, "images": one.images} for one in result.confusions()
        ],
        "other_images": len(result.others),
        "other_unknown": sum(image.unknown for image in result.others),
        "other_classes": [*dict.fromkeys(image.label for image in result.others)],
        "missing_classes": result.missing,
        "learnt": result.learnt,
        "unreadable": len(result.remarks),
    }


def _numbers(result: "ClassResult") -> dict[str, Any]:
    return {"accuracy": result.percent, "interval": result.interval, "correct": result.correct, "images": result.total}


def _print(model: Path, folder: Path, result: "FolderResult") -> None:
    screen = console()
    screen.print(f"version {result.version}, {len(result.images)} images of {folder}", markup=False)
    shown = table("accuracy", "right", "of", "percent", "95 % interval")
    for name, names in _groups(result):
        found = result.result(names)
        shown.add_row(name, str(found.correct), str(found.total), percent(found.percent), _interval(found))
    screen.print(shown)
    screen.print(_classes(result))
    for line in sentences(result):
        screen.print(line, markup=False)
    if (
        len(result.classes) > MAX_CLASSES
        or max(len(result.missing), len({one.label for one in result.others})) > MAX_NAMES
    ):
        screen.print(f"to see all of them: ssil test {quote(str(model))} {quote(str(folder))} --json", markup=False)


def _interval(result: "ClassResult") -> str:
    return str(result.interval) if result.interval else "-"


def _groups(result: "FolderResult") -> Iterator[tuple[str, tuple[str, ...]]]:
    old, new = result.names[: result.old], result.names[result.old :]
    both = [(name, names) for name, names in (("old classes", old), ("new classes", new)) if result.result(names).total]
    return iter([("all classes", result.names), *(both if len(both) == 2 else [])])


def _classes(result: "FolderResult") -> Any:
    """Return a table of the classes, the least accurate first, each with the class that it is most often taken for."""
    mistaken = {one.label: one for one in reversed(result.confusions())}
    worst = sorted(result.classes.items(), key=lambda item: (item[1].percent, -item[1].total))
    shown = table("class", "taken most often for", "right", "of", "percent", "95 % interval", words=2)
    for name, found in worst[:MAX_CLASSES]:
        other = f"{mistaken[name].predicted} ({len(mistaken[name].images)})" if name in mistaken else ""
        numbers = (str(found.correct), str(found.total), percent(found.percent, 0), _interval(found))
        shown.add_row(plain(name), plain(other), *numbers)
    return shown


def sentences(result: "FolderResult") -> Iterator[str]:
    """Yield lines on what the tables don't show: unknown images, classes on one side only, images left out."""
    from ssil.classifier.folder_results import unknown_classes

    if (more := len(result.classes) - MAX_CLASSES) > 0:
        yield f"({more} more accurate class{'es' * (more > 1)} {'are' if more > 1 else 'is'} not listed)"
    if called := [image for image in result.images if image.unknown]:
        right = sum(image.correct for image in called)
        yield f"{len(called)} of these images are called unknown; the best class of {right} of them is right"
    if others := [*unknown_classes(result)]:
        yield f"{len(result.others)} images are of classes that the model does not know, and not counted above:"
        yield from (f"  {line}" for line in others[:MAX_NAMES])
        yield from [f"  and {len(others) - MAX_NAMES} more"] * (len(others) > MAX_NAMES)
    if missing := result.missing:
        names = ", ".join(missing[:MAX_NAMES]) + (f" and {len(missing) - MAX_NAMES} more" * (len(missing) > MAX_NAMES))
        yield f"no image of: {names}"
    if result.learnt:
        yield f"{result.learnt} images are left out: the model has learnt them"
