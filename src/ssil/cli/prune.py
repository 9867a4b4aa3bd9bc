"""`ssil prune`: old versions off the disk."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from ssil.cli.terminal import console
from ssil.core.errors import UserError

app = App(
    name="prune",
    help_epilogue="""The newest versions stay, and the current one in any case. Pictures that no version
refers to any more are removed too.

Examples:
  ssil history birds
  ssil prune birds --keep 3""",
)


@app.default
def prune(
    model: Annotated[Path, Parameter(help="the model's directory")],
    /,
    *,
    keep: Annotated[int, Parameter(help="how many of the newest versions stay")] = 5,
) -> None:
    """Remove a model's old versions, and the pictures that only they refer to."""
    if keep < 1:
        raise UserError(f"keep: {keep} versions are no model; give 1 or more")
    from ssil.classifier.versions import Shelf  # brings torch

    shelf = Shelf(model)
    shelf.current()  # before a lock makes a folder of a name that is misspelt
    before = shelf.size()
    with shelf.locked():
        gone = shelf.prune(keep)
    freed, kept = before - shelf.size(), ", ".join(map(str, shelf.numbers()))
    console().print(f"{model}: {len(gone)} version(s) removed, {freed / 1e6:.1f} MB; kept: {kept}", markup=False)
