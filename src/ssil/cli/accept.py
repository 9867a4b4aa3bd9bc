"""`ssil accept`: publish an update that was refused."""

from cyclopts import App

from ssil.cli.terminal import Json, Model, Trust, console, json_line

app = App(
    name="accept",
    help_epilogue="""An update that costs more than --max-drop allows is refused: the model stays as
it was, and the update is kept as its candidate until the next update, or
`ssil discard`. Look at what it would change (`ssil learn --html`), then accept
it or not. An accepted update can be rolled back like any other.

Examples:
  ssil learn birds photos/second-week --max-drop 5 --html update.html
  ssil accept birds
  ssil rollback birds 1""",
)


@app.default
def accept(model: Model, /, *, trust: Trust = None, json: Json = False) -> None:
    """Publish an update that --max-drop has refused."""
    from ssil.classifier.model_directory import ModelDirectory  # imports torch

    directory = ModelDirectory(model, trust or ())
    directory.current()  # fails before the lock creates a folder of a misspelt name
    with directory.locked():
        version = directory.accept_candidate()
    if json:
        json_line(version=version.number, **version.history[-1])
    else:
        refused = version.history[-1].get("refused", "")
        console().print(f"{model}: version {version.number} is the current one ({refused})", markup=False)
