"""Which method suits a classifier that grows: updates of 1, 2, 5 and 10 classes, judged on held-out training images.

python benchmarks/updates.py FOLDER --out NEW.csv [--methods ssil,wa] [--memory 2000] [--seeds 0,1,2] [--images 30]
    [--held 20] [--set NAME=VALUE ...]
python benchmarks/updates.py --table NEW.csv

FOLDER has a sub-folder a class; of each class some images are learnt, others judge. Ten classes come first; to these
are added, each time anew, one update of 10 classes, two of 5, three of 2 and three of 1, under the settings of
`ssil learn` but for those `--set`. What OUT has already is not made again. The table has the accuracy on all classes
after the last update, as mean and deviation over seeds, and in brackets that on the first ten and on the added ones.
"""

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from random import Random
from statistics import fmean, stdev
from typing import NamedTuple

from growing import accuracy, add, album, numbers, read, values
from ssil.classifier.classifier_settings import ClassifierSettings, make_settings
from ssil.classifier.image_file import ImageFile, LabelledImages
from ssil.classifier.update import update

FIRST, UPDATES = 10, {10: 1, 5: 2, 2: 3, 1: 3}
"""Classes at first; of how many classes how many updates follow."""


class Row(NamedTuple):
    """Updates of one size, where they led to, and the seconds that each took."""

    method: str
    size: int
    memory: int
    seed: int
    all: float
    first: float
    added: float
    seconds: float


class Stream(NamedTuple):
    """Images of classes in the order of their arrival, to learn and to judge by."""

    names: Sequence[str]
    learnt: dict[str, list[ImageFile]]
    held: dict[str, list[ImageFile]]

    def of(self, names: Sequence[str]) -> LabelledImages:
        """What there is to learn of these classes."""
        return [(image, name) for name in names for image in self.learnt[name]]


def draw(groups: Mapping[str, list[ImageFile]], learnt: int, held: int, seed: int) -> Stream:
    """Classes and their images, by chance."""
    random = Random(seed)
    names = random.sample(sorted(groups), FIRST + max(UPDATES))
    drawn = {name: random.sample(groups[name], learnt + held) for name in names}
    return Stream(
        names,
        {name: group[:learnt] for name, group in drawn.items()},
        {name: group[learnt:] for name, group in drawn.items()},
    )


def follow(stream: Stream, settings: ClassifierSettings) -> Iterator[Row]:
    """Learn ten classes; then, from there, more of them in updates of each size."""
    first = update(None, settings, stream.of(stream.names[:FIRST])).classifier
    for size, updates in UPDATES.items():
        began, classifier = time.monotonic(), first
        for at in range(FIRST, FIRST + size * updates, size):
            classifier = update(classifier, settings, stream.of(stream.names[at : at + size])).classifier
        seconds = round((time.monotonic() - began) / updates, 1)
        right = [accuracy(classifier, stream.held[name], name) for name in classifier.classes.names]
        on_progress = fmean(right), fmean(right[:FIRST]), fmean(right[FIRST:])
        yield Row(settings.method, size, settings.memory, settings.seed, *on_progress, seconds)


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Markdown: a line a method and memory, a column a size; the best at the top."""
    sizes = sorted({row.size for row in rows})
    yield "| memory | method | " + " | ".join(f"{size} at a time" for size in sizes) + " | mean |"
    yield "|---|---|" + "---|" * (len(sizes) + 1)
    groups: dict[tuple[int, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.memory, row.method), []).append(row)
    mean = {key: fmean(row.all for row in group) for key, group in groups.items()}
    for memory, method in sorted(groups, key=lambda key: (key[0], -mean[key])):
        group = groups[memory, method]
        cells = " | ".join(cell([row for row in group if row.size == size]) for size in sizes)
        yield f"| {memory} | {method} | {cells} | {mean[memory, method]:.1f} |"


def cell(rows: Sequence[Row]) -> str:
    """The mean and deviation over seeds; in brackets, of the first and the added classes."""
    overall, first, added = (fmean(getattr(row, part) for row in rows) for part in ("all", "first", "added"))
    spread = f" ± {stdev(row.all for row in rows):.1f}" if len(rows) > 1 else ""
    return f"{overall:.1f}{spread} ({first:.0f}, {added:.0f})"


def main() -> None:
    """Make the rows that are missing, or show the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--table", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--methods", default="ssil,wa,bic,eeil,icarl,lucir,podnet,uw,ft,er")
    parser.add_argument("--seeds", type=numbers, default=[0])
    parser.add_argument("--memory", type=int, default=2000)
    parser.add_argument("--images", type=int, default=30)
    parser.add_argument("--held", type=int, default=20)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    asked = parser.parse_args()
    if asked.table:
        print("\n".join(table(read(asked.table, Row))))
        return
    images = album(asked.folder)
    done = {(row.method, row.memory, row.seed) for row in read(asked.out, Row)}
    for seed, method in product(asked.seeds, asked.methods.split(",")):
        if (method, asked.memory, seed) not in done:
            settings = make_settings({"memory": asked.memory, "seed": seed, "method": method, **values(asked.set)})
            rows = [*follow(draw(images, asked.images, asked.held, seed), settings)]
            print(*rows, sep="\n", flush=True)
            add(asked.out, rows)


if __name__ == "__main__":
    main()
