"""`ssil rollback`: make another version the current one."""

from typing import Annotated

from cyclopts import App, Parameter

from ssil.cli.terminal import Model, Trust, console

app = App(
    name="rollback",
    help_epilogue="""The later versions stay, and can be rolled forward to. The next update goes on
from the version that is current then.

Examples:
  ssil history birds
  ssil rollback birds 2""",
)


@app.default
def rollback(
    model: Model,
    version: Annotated[int, Parameter(help="which one, see `ssil history`")],
    /,
    *,
    trust: Trust = None,
) -> None:
    """Make another version of a model the current one."""
    from ssil.classifier.model_directory import ModelDirectory  # imports torch

    directory = ModelDirectory(model, trust or ())
    before = directory.current_or_none()
    with directory.locked():
        directory.load(version)
        directory.point_to(version)
    console().print(f"{model}: version {version} is the current one (it was {before or 'not known'})", markup=False)
