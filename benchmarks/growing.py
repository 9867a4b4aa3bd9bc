"""What the benchmarks of growing classifiers share."""

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple, TypeVar, get_type_hints

from ssil.classifier.image_file import ImageFile
from ssil.classifier.images import load_images
from ssil.classifier.prediction import Classifier, predict

Row = TypeVar("Row")


def album(folder: str | Path) -> dict[str, list[ImageFile]]:
    """Return the images of a folder by their class."""
    groups: dict[str, list[ImageFile]] = {}
    for image, name in load_images(str(folder))[0]:
        groups.setdefault(name, []).append(image)
    return groups


def accuracy(classifier: Classifier, images: Sequence[ImageFile], name: str) -> float:
    """Return the accuracy on the images of a class, in percent."""
    return 100 * fmean(guess.ranking[0][0] == name for guess in predict(classifier, images, top=1))


def read(path: Path, kind: type[Row]) -> list[Row]:
    """The rows of a file; none if there is no such file."""
    if not path.exists():
        return []
    types = get_type_hints(kind)
    with path.open(newline="") as file:
        return [kind(**{name: types[name](value) for name, value in row.items()}) for row in csv.DictReader(file)]


def add(path: Path, rows: Sequence[NamedTuple]) -> None:
    """Write rows to the end of a file, which has a header."""
    if not rows:
        return
    with path.open("a", newline="") as file:
        csv.writer(file).writerows(rows if file.tell() else [rows[0]._fields, *rows])


def values(words: Iterable[str]) -> dict[str, Any]:
    """`name=value` of settings."""
    given = dict(word.split("=", 1) for word in words)
    return {name: json.loads(value) if value[:1] in "0123456789{tf" else value for name, value in given.items()}


def numbers(text: str) -> list[int]:
    """`1,2` as numbers."""
    return [int(part) for part in text.split(",")]
