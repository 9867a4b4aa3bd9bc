"""A classifier that is told of new classes week by week: what it still knows of the old ones, by method.

python benchmarks/weeks.py FOLDER --out NEW.csv [--methods eeil,ft,ssil] [--seeds 0,1] [--memory 500] [--weeks 6]
    [--classes 10] [--pictures 100] [--set NAME=VALUE ...]
python benchmarks/weeks.py --table NEW.csv

FOLDER is what `ssil data export` makes: train/ and test/ with a sub-folder a class. Every week brings so many classes,
with so many training pictures each, as an update of `ssil learn` under its own settings but for those `--set`; all test
pictures of the classes so far then judge. What OUT has already is not made again. The table has a line a method: for
each update after the first week the accuracy on the classes before it and on those that it brought, as mean and
deviation over seeds.
"""

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import nan
from pathlib import Path
from random import Random
from statistics import fmean, stdev
from typing import NamedTuple

from growing import accuracy, add, album, numbers, read, values
from ssil.classifier.classifier_settings import ClassifierSettings, make_settings
from ssil.classifier.image_file import ImageFile, LabelledImages
from ssil.classifier.prediction import Classifier
from ssil.classifier.update import update


class Row(NamedTuple):
    """What a classifier knows after a week, in percent."""

    method: str
    memory: int
    seed: int
    week: int
    old: float
    new: float
    all: float
    seconds: float


Album = Mapping[str, Sequence[ImageFile]]


def drawn(train: Album, weeks: int, classes: int, pictures: int, seed: int) -> list[LabelledImages]:
    """What each week brings, by chance."""
    random = Random(seed)
    names = random.sample(sorted(train), weeks * classes)
    found = {name: random.sample(list(train[name]), pictures) for name in names}
    arrivals = (names[at : at + classes] for at in range(0, len(names), classes))
    return [[(picture, name) for name in week for picture in found[name]] for week in arrivals]


def follow(arrivals: Sequence[LabelledImages], test: Album, settings: ClassifierSettings) -> Iterator[Row]:
    """Learn week by week, and be judged after each."""
    classifier: Classifier | None = None
    for week, arrived in enumerate(arrivals, start=1):
        known, began = classifier.classes.seen if classifier else 0, time.monotonic()
        classifier = update(classifier, settings, arrived).classifier
        seconds = time.monotonic() - began
        right = [accuracy(classifier, test[name], name) for name in classifier.classes.names]
        old = fmean(right[:known]) if known else nan
        yield Row(
            settings.method, settings.memory, settings.seed, week, old, fmean(right[known:]), fmean(right), seconds
        )


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Markdown: old and new classes after each update but the first; the best method at the top."""
    weeks = sorted({row.week for row in rows if row.week > 1})
    yield "| method | seeds | " + " | ".join(f"update {week - 1}: old, new" for week in weeks) + " | all, in the end |"
    yield "|---|---|" + "---|" * (len(weeks) + 1)
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.method, []).append(row)
    for group in sorted(groups.values(), key=lambda group: -fmean(row.old for row in group if row.week > 1)):
        each = {week: [row for row in group if row.week == week] for week in weeks}
        parts = [f"{spread(row.old for row in found)}, {spread(row.new for row in found)}" for found in each.values()]
        end = each[weeks[-1]]
        yield f"| {group[0].method} | {len(end)} | {' | '.join(parts)} | {spread(row.all for row in end)} |"


def spread(values: Iterator[float]) -> str:
    """The mean, and the deviation if there are several."""
    found = [*values]
    return f"{fmean(found):.1f}" + (f" ± {stdev(found):.1f}" if len(found) > 1 else "")


def main() -> None:
    """Make the rows that are missing, or show the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--methods", default="eeil,ft,ssil")
    parser.add_argument("--seeds", type=numbers, default=[0])
    parser.add_argument("--memory", type=int, default=500)
    parser.add_argument("--weeks", type=int, default=6)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--pictures", type=int, default=100)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    asked = parser.parse_args()
    if asked.table:
        print("\n".join(table(read(asked.table, Row))))
        return
    train, test = (album(asked.folder / part) for part in ("train", "test"))
    done = {(row.method, row.memory, row.seed) for row in read(asked.out, Row)}
    for seed, method in product(asked.seeds, asked.methods.split(",")):
        if (method, asked.memory, seed) in done:
            continue
        settings = make_settings({"memory": asked.memory, "seed": seed, "method": method, **values(asked.set)})
        arrivals = drawn(train, asked.weeks, asked.classes, asked.pictures, seed)
        rows = []
        for row in follow(arrivals, test, settings):
            print(row, flush=True)
            rows.append(row)
        add(asked.out, rows)


if __name__ == "__main__":
    main()
