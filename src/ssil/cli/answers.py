"""What a model says of pictures, line by line."""

import csv
import sys
from typing import Literal

from ssil.classifier.classifier import Guess
from ssil.cli.terminal import json_line

UNKNOWN = "unknown"


class Answers:
    """Prints a line a picture, in one of three forms; below the threshold it says "unknown"."""

    def __init__(self, form: Literal["plain", "json", "csv"], unknown: float) -> None:
        self.form, self.unknown = form, unknown
        self.writer = csv.writer(sys.stdout, lineterminator="\n")
        if form == "csv":
            self.writer.writerow(["picture", "rank", "class", "probability"])

    def add(self, guess: Guess) -> None:
        """One more."""
        ranking = (
            guess.ranking if guess.ranking[0][1] >= self.unknown else ((UNKNOWN, guess.ranking[0][1]), *guess.ranking)
        )
        if self.form == "json":
            json_line(picture=guess.name, classes=[{"class": name, "probability": p} for name, p in ranking])
        elif self.form == "csv":
            self.writer.writerows([guess.name, rank, name, f"{p:.4f}"] for rank, (name, p) in enumerate(ranking, 1))
        else:
            print(f"{guess.name}: {', '.join(f'{name} {100 * p:.1f} %' for name, p in ranking)}", flush=True)
