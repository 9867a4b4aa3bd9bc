"""`ssil discard`: remove an update that was refused."""

from cyclopts import App

from ssil.cli.terminal import Model, console
from ssil.core.errors import UserError

app = App(
    name="discard",
    help_epilogue="""The update that --max-drop refused last is removed, with its images. The model
stays as it is. The next update does the same.

Examples:
  ssil discard birds""",
)


@app.default
def discard(model: Model, /) -> None:
    """Remove an update that --max-drop has refused."""
    from ssil.classifier.versions import VersionedDirectory

    directory = VersionedDirectory(model)
    directory.current()  # fails before the lock creates a folder of a misspelt name
    with directory.locked():
        if not directory.drop_candidate():
            raise UserError(f"model: {model} has no update that was refused; there is nothing to discard")
    console().print(f"{model}: the refused update is removed", markup=False)
