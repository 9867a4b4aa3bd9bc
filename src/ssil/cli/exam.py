"""`ssil exam`: a test folder by which every later update of a model is judged."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from ssil.cli.terminal import Json, Model, console, json_line, print_remarks
from ssil.core.errors import UserError

app = App(
    name="exam",
    help_epilogue="""FOLDER has one sub-folder of images for each class; keep these images for the
purpose, and never learn them. Every later `ssil learn` then tells how many of
them are recognised before and after the update, `--max-drop` goes by them, and
`ssil history` shows the numbers. They may be of classes that are still to come.

The folder is remembered, not copied: it stays where it is, and you may add to
it. An update does not begin if the folder is gone. With no FOLDER, the command
shows which one is remembered.

Examples:
  ssil exam birds photos/kept-for-testing
  ssil learn birds photos/third-week --max-drop 5
  ssil exam birds --none""",
)


@app.default
def exam(
    model: Model,
    folder: Annotated[Path | None, Parameter(help="images with one sub-folder per class")] = None,
    /,
    *,
    none: Annotated[bool, Parameter(negative="", show_default=False, help="no test folder from now on")] = False,
    json: Json = False,
) -> None:
    """Remember a test folder by which every later update is judged."""
    if none and folder:
        raise UserError("none: a folder is given too; give a folder or --none")
    from ssil.classifier.examination import read_test_folder, remember, remembered  # imports torch
    from ssil.classifier.versions import VersionedDirectory

    directory = VersionedDirectory(model)
    directory.current()  # fails before the lock creates a folder of a misspelt name
    if folder or none:
        found = read_test_folder(folder) if folder else None
        print_remarks(found.remarks if found else (), sys.stderr if json else sys.stdout)
        with directory.locked(), directory.writing():
            remember(model, found)
    known = remembered(model)
    if json:
        json_line(folder=known and known["folder"], images=known and known["images"], digest=known and known["digest"])
    elif known:
        screen = console()
        screen.print(f"{model}: updates are judged by {known['images']} images in {known['folder']}", markup=False)
        screen.print(f"how many are recognised now: ssil test {model} {known['folder']}", markup=False)
    else:
        console().print(f"{model}: no test folder", markup=False)
