"""`ssil rename`: another name for a class."""

from typing import Annotated

from cyclopts import App, Parameter

from ssil.cli.terminal import Model, Trust, console

app = App(name="rename", help_epilogue="Examples:\n  ssil rename birds sparow sparrow")


@app.default
def rename(
    model: Model,
    old: Annotated[str, Parameter(help="the class's name")],
    new: Annotated[str, Parameter(help="its new name")],
    /,
    *,
    trust: Trust = None,
) -> None:
    """Give a model's class another name."""
    from ssil.classifier import edits  # imports torch
    from ssil.classifier.model_directory import ModelDirectory

    version = edits.rename(ModelDirectory(model, trust or ()), old, new)
    console().print(f"{model}: {old!r} is {new!r} from version {version.number} on", markup=False)
