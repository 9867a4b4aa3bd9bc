"""`ssil prune`: remove old versions from the disk."""

from typing import Annotated

from cyclopts import App, Parameter

from ssil.cli.terminal import Model, console
from ssil.core.errors import UserError

app = App(
    name="prune",
    help_epilogue="""The newest versions stay, and always the current one. Images that no version
refers to any more are removed too.

Examples:
  ssil history birds
  ssil prune birds --keep 3""",
)


@app.default
def prune(
    model: Model,
    /,
    *,
    keep: Annotated[int, Parameter(help="how many of the newest versions stay")] = 5,
) -> None:
    """Remove a model's old versions, and the images that only they use."""
    if keep < 1:
        raise UserError(f"keep: {keep} versions are no model; give 1 or more")
    from ssil.classifier.versions import VersionedDirectory  # imports torch

    directory = VersionedDirectory(model)
    directory.current()  # fails before the lock creates a folder of a misspelt name
    before = directory.size()
    with directory.locked():
        removed = directory.prune(keep)
    freed, kept = before - directory.size(), ", ".join(map(str, directory.numbers()))
    console().print(f"{model}: {len(removed)} version(s) removed, {freed / 1e6:.1f} MB; kept: {kept}", markup=False)
