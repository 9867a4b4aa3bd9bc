"""`ssil forget`: remove a class from a model."""

from typing import Annotated

from cyclopts import App, Parameter

from ssil.cli.terminal import Model, Trust, console

app = App(
    name="forget",
    help_epilogue="""The class has no score any more in the new version, and its images are erased
from all versions. Earlier versions can still name it, until they are pruned.
What remains of it in the new version is printed: nothing with the methods ncm
and fecam (covariance=full); a network that was trained stays as it is.

Examples:
  ssil forget birds dodo""",
)


@app.default
def forget(
    model: Model,
    name: Annotated[str, Parameter(help="the class's name")],
    /,
    *,
    trust: Trust = None,
) -> None:
    """Remove a class from a model, and erase its images."""
    from ssil.classifier import edits  # imports torch
    from ssil.classifier.model_directory import ModelDirectory

    version = edits.forget(ModelDirectory(model, trust or ()), name)
    console().print(f"{model}: version {version.number} knows no {name!r}; its images are erased", markup=False)
    trace = edits.remaining_trace(version.classifier)
    console().print(f"what remains of it: {trace or 'nothing'}", markup=False)
