"""`ssil predict`: the most likely classes of images."""

import csv as csv_files
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from ssil.cli.terminal import Json, Model, Trust, Version, json_line, printable
from ssil.core.errors import UserError

if TYPE_CHECKING:
    from ssil.classifier.exported_model import Prediction

UNKNOWN = "unknown"
MAX_THREADS = 1024

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""The first characters of a cell that a spreadsheet takes for a formula."""

app = App(
    name="predict",
    help_epilogue="""IMAGES are files, folders (all image files below them), or - for an image on
standard input. An image that can't be read gets a line of its own, and the
exit code is 1 in the end.

An image of no known class is called unknown, with the best class beside it. The
rule is part of the model: its highest score is hardly above the mean of its
scores, as is that of 5 % of the hold-out images (see `ssil learn
--unknown-loss`). A model made before there was a rule, or with fewer than 20
hold-out images, calls no image unknown. --unknown 0 names a known class always.

Examples:
  ssil predict birds somebody.jpg
  ssil predict birds holiday/ --top 3 --csv > found.csv
  ssil predict birds - < somebody.jpg""",
)


@app.default
def predict(
    model: Model,
    images: Annotated[str, Parameter(allow_leading_hyphen=True, help="a file, a folder, or -; and more of them")],
    /,
    *more: Annotated[str, Parameter(allow_leading_hyphen=True)],
    top: Annotated[int, Parameter(help="how many classes to name")] = 1,
    unknown: Annotated[
        float | None,
        Parameter(help='say "unknown" where no class has this probability, instead of by the model\'s rule'),
    ] = None,
    version: Version = None,
    threads: Annotated[int | None, Parameter(help="that compute (default: one per core)")] = None,
    trust: Trust = None,
    json: Json = False,
    csv: Annotated[bool, Parameter(negative="", show_default=False, help="print comma-separated values")] = False,
) -> None:
    """Classify images, with probabilities."""
    if top < 1 or (unknown is not None and not 0 <= unknown <= 1):
        raise UserError("top: give 1 or more; unknown: give a probability from 0 to 1")
    if threads is not None and not 1 <= threads <= MAX_THREADS:
        raise UserError(f"threads: {threads} is no number of threads; give 1 to {MAX_THREADS}")
    for name in (images, *more):
        if name.startswith("-") and name != "-" and not Path(name).exists():
            raise UserError(f"unknown option {name!r}; see `ssil predict --help`")
    from ssil.classifier.exported_model import load_predictor
    from ssil.classifier.prediction_inputs import read_inputs  # imports numpy, which `ssil predict --help` need not

    predictor = load_predictor(model, version, trust or (), threads)
    printer, unreadable = _Printer("json" if json else "csv" if csv else "plain", unknown), 0
    for names, views, remarks in read_inputs([images, *more], sys.stdin.buffer, predictor.preprocessing):
        for prediction in predictor.predict(names, views, top):
            printer.print(prediction)
        for remark in remarks:
            print(f"{printable(remark.path)}: {printable(remark.reason)}", file=sys.stderr)
        unreadable += len(remarks)
    if unreadable:
        raise SystemExit(1)


class _Printer:
    """Prints one prediction at a time; that of an unknown image begins with "unknown".

    Unknown is an image whose highest probability is below the threshold or, without one, by the model's own rule.
    """

    def __init__(self, form: Literal["plain", "json", "csv"], threshold: float | None) -> None:
        self.form, self.threshold = form, threshold
        self.csv = csv_files.writer(sys.stdout, lineterminator="\n")
        if form == "csv":
            self.csv.writerow(["picture", "rank", "class", "probability", "unknown"])

    def print(self, prediction: "Prediction") -> None:
        """Print a prediction."""
        name, ranking, unknown = prediction
        highest = ranking[0][1]
        if unknown := unknown if self.threshold is None else highest < self.threshold:
            ranking = ((UNKNOWN, highest), *ranking)
        if self.form == "json":
            classes = [{"class": label, "probability": p} for label, p in ranking]
            json_line(picture=name, classes=classes, unknown=unknown)
        elif self.form == "csv":
            self.csv.writerows(
                [csv_cell(name), rank, csv_cell(label), f"{p:.4f}", "yes" if unknown else "no"]
                for rank, (label, p) in enumerate(ranking, 1)
            )
        else:
            named = ", ".join(f"{label} {100 * p:.1f} %" for label, p in ranking)
            print(printable(f"{name}: {named}"), flush=True)


def csv_cell(text: str) -> str:
    r"""Return a name for a CSV file: control characters are escaped, and what a spreadsheet computes has a quote first.

    >>> csv_cell("ant"), csv_cell("=1+1"), csv_cell("-"), csv_cell("a\nb")
    ('ant', "'=1+1", '-', 'a\\nb')
    """
    return f"'{printable(text)}" if text.startswith(FORMULA_STARTS) and text != "-" else printable(text)
