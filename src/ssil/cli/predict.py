"""`ssil predict`: what is on these pictures."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from ssil.cli.terminal import Json, Trust
from ssil.core.errors import UserError

app = App(
    name="predict",
    help_epilogue="""PICTURES are files, folders (all picture files below them), or - for a picture on
standard input. A picture that can't be read gets a line of its own, and the
exit code is 1 in the end.

Examples:
  ssil predict birds somebody.jpg
  ssil predict birds holiday/ --top 3 --csv > found.csv
  ssil predict birds - < somebody.jpg""",
)


@app.default
def predict(
    model: Annotated[Path, Parameter(help="the model's directory")],
    pictures: Annotated[str, Parameter(help="a file, a folder, or -; and more of them")],
    /,
    *more: str,
    top: Annotated[int, Parameter(help="how many classes to name")] = 1,
    unknown: Annotated[float, Parameter(help='say "unknown" where no class has this probability')] = 0.0,
    version: Annotated[int | None, Parameter(help="of the model (default: the current one)")] = None,
    trust: Trust = None,
    json: Json = False,
    csv: Annotated[bool, Parameter(negative="", show_default=False, help="print comma-separated values")] = False,
) -> None:
    """Name what is on pictures, with probabilities."""
    if top < 1 or not 0 <= unknown <= 1:
        raise UserError("top: give 1 or more; unknown: give a probability from 0 to 1")
    from ssil.classifier.classifier import guesses
    from ssil.classifier.model_directory import ModelDirectory
    from ssil.classifier.prediction_inputs import gallery
    from ssil.cli.answers import Answers  # brings torch

    classifier = ModelDirectory(model, trust or ()).load(version).classifier
    answers, unreadable = Answers("json" if json else "csv" if csv else "plain", unknown), 0
    for found, remarks in gallery([pictures, *more], sys.stdin.buffer, classifier.settings.look()):
        for guess in guesses(classifier, found, top):
            answers.add(guess)
        for remark in remarks:
            print(f"{remark.path}: {remark.reason}", file=sys.stderr)
        unreadable += len(remarks)
    if unreadable:
        raise SystemExit(1)
