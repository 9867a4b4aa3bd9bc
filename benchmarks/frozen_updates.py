"""Which method suits `ssil learn` on frozen features: updates of 1, 2, 5 and 10 classes, and more of known ones.

python benchmarks/frozen_updates.py --extract FOLDER FEATURES.npz [--views 2]
python benchmarks/frozen_updates.py FEATURES.npz --out NEW.csv [--methods slda,ncm] [--seeds 0,1,2] [--most 60]
python benchmarks/frozen_updates.py --table NEW.csv

`--extract` writes the features that efficientnet_lite0 has of a folder's images: FEATURES.npz with `features`, `labels`
and `classes`. Give training images alone: of each class three in ten, at most 50, judge; the others (at most `--most`)
are learnt. A quarter of the classes (at least five) comes first; to these are added, each time anew, the updates of
`UPDATES` as far as the classes last, and the second half of the first classes' images ("more"). All goes through the
update of `ssil learn` with its hold-out set. What OUT has already is not made again. The table has the accuracy, the
mean of the classes, after the last update; and the median of the seconds that an update takes without features.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import islice, product
from pathlib import Path
from random import Random
from statistics import fmean, median, stdev
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from growing import add, numbers, read
from ssil.classifier.classifier_settings import (
    DEFAULT_VIEWS,
    ClassifierSettings,
    make_settings,
    with_weights_settings,
)
from ssil.classifier.feature_extraction import trained_network
from ssil.classifier.holdout import evaluate_scores, image_scores
from ssil.classifier.image_file import ImageFile
from ssil.classifier.images import load_images
from ssil.classifier.prediction import Classifier
from ssil.classifier.update import update
from ssil.nn.first_weights import read_first_weights
from ssil.nn.weights import named_weights

WEIGHTS = named_weights("efficientnet_lite0")
UPDATES = {1: 3, 2: 3, 5: 3, 10: 3}
"""Of how many classes how many updates follow at most."""


class Row(NamedTuple):
    """Updates of one size ("more": more images of known classes), where they led to, and the seconds that each took."""

    data: str
    method: str
    updates: str
    seed: int
    accuracy: float
    seconds: float


class Stream(NamedTuple):
    """Images of classes in the order of their arrival, to learn and to judge by."""

    names: Sequence[str]
    learnt: dict[str, list[ImageFile]]
    judging: dict[str, list[ImageFile]]

    @property
    def first(self) -> int:
        """The number of classes that come first."""
        return max(5, len(self.names) // 4)

    def of(self, names: Sequence[str], part: slice = slice(None)) -> list[tuple[ImageFile, str]]:
        """What there is to learn of these classes."""
        return [(image, name) for name in names for image in self.learnt[name][part]]

    def halves(self, name: str) -> tuple[slice, slice]:
        """The first and the second half of a class's images."""
        half = len(self.learnt[name]) // 2
        return slice(half), slice(half, None)


def settings(**given: object) -> ClassifierSettings:
    """The settings of a classifier on frozen features of `WEIGHTS`."""
    return make_settings(with_weights_settings({"freeze": True, "views": DEFAULT_VIEWS, **given}, WEIGHTS))


def extract(folder: str, out: Path, views: int) -> None:
    """Write the features of a folder's images, of so many views of each."""
    images = load_images(folder)[0]
    network = trained_network(settings(views=views), None, read_first_weights(WEIGHTS))
    (found,) = network.with_features([[image for image, _ in images]])
    features = np.stack([image.features().numpy() for image in found if image.features])
    classes = sorted({name for _, name in images})
    np.savez(out, features=features, labels=[classes.index(name) for _, name in images], classes=classes)


def images_of(path: Path) -> dict[str, list[ImageFile]]:
    """The images of a file of features by class; in place of their pixels there is their number."""
    data = np.load(path)
    classes = data["classes"] if "classes" in data else np.arange(data["labels"].max() + 1)
    groups: dict[str, list[ImageFile]] = {str(name): [] for name in classes}
    for number, (vector, label) in enumerate(zip(data["features"], data["labels"], strict=True)):
        groups[str(classes[label])].append(stand_in(number, vector))
    return groups


def stand_in(number: int, vector: NDArray[np.float32]) -> ImageFile:
    """An image of four bytes with the features of a real one."""
    file = BytesIO()
    Image.frombytes("L", (2, 2), number.to_bytes(4)).save(file, "PNG")
    return ImageFile.from_bytes(str(number), file.getvalue()).with_features(torch.from_numpy(vector.copy()))


def draw(groups: dict[str, list[ImageFile]], most: int, seed: int) -> Stream:
    """Classes and their images, by chance."""
    random = Random(seed)
    names = random.sample(sorted(groups), len(groups))
    drawn = {name: random.sample(groups[name], len(groups[name])) for name in names}
    judging = {name: group[: min(50, 3 * len(group) // 10)] for name, group in drawn.items()}
    return Stream(names, {name: group[len(judging[name]) :][:most] for name, group in drawn.items()}, judging)


def judge(classifier: Classifier, stream: Stream) -> float:
    """The mean accuracy of the classes so far, in percent."""
    names = classifier.classes.names
    images = tuple(tuple(stream.judging[name]) for name in names)
    result = evaluate_scores(classifier, image_scores(classifier, images))
    return fmean(result.accuracy([name]) or 0.0 for name in names)


def follow(stream: Stream, data: str, own: ClassifierSettings) -> Iterator[Row]:
    """Learn the first classes; then, from there, others in updates of each size, and more of the same."""
    weights, known = read_first_weights(WEIGHTS), stream.names[: stream.first]
    halves = {name: stream.halves(name) for name in known}
    half, rest = ([pair for name in known for pair in stream.of([name], halves[name][part])] for part in range(2))
    classifier, seconds = timed(update(None, own, half, init=weights).classifier, [rest], own)
    yield Row(data, own.method, "more", own.seed, judge(classifier, stream), seconds)
    first = update(None, own, stream.of(known), init=weights).classifier
    yield Row(data, own.method, "none", own.seed, judge(first, stream), seconds)
    for size, most in UPDATES.items():
        starts = range(stream.first, len(stream.names) - size + 1, size)
        arrivals = [stream.of(stream.names[at : at + size]) for at in islice(starts, most)]
        if arrivals:
            classifier, seconds = timed(first, arrivals, own)
            yield Row(data, own.method, str(size), own.seed, judge(classifier, stream), seconds)


def timed(
    classifier: Classifier, arrivals: Sequence[list[tuple[ImageFile, str]]], own: ClassifierSettings
) -> tuple[Classifier, float]:
    """The classifier after these updates, and the seconds of one."""
    began = time.monotonic()
    for arrived in arrivals:
        classifier = update(classifier, own, arrived).classifier
    return classifier, round((time.monotonic() - began) / len(arrivals), 2)


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Markdown: a line for each data set and method, a column for each size of updates; the best first."""
    sizes = ["none", *map(str, UPDATES), "more"]
    yield "| data | method | first classes | " + " | ".join(f"+ {size}" for size in sizes[1:]) + " | mean | s |"
    yield "|---|---|" + "---|" * (len(sizes) + 2)
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.data, row.method), []).append(row)
    mean = {key: fmean(row.accuracy for row in group) for key, group in groups.items()}
    for key in sorted(groups, key=lambda key: (key[0], -mean[key])):
        cells = [cell([row.accuracy for row in groups[key] if row.updates == size]) for size in sizes]
        seconds = median(row.seconds for row in groups[key])
        yield f"| {key[0]} | {key[1]} | {' | '.join(cells)} | {mean[key]:.1f} | {seconds:.1f} |"


def cell(accuracies: Sequence[float]) -> str:
    """The mean and the deviation over seeds."""
    spread = f" ± {stdev(accuracies):.1f}" if len(accuracies) > 1 else ""
    return f"{fmean(accuracies):.1f}{spread}" if accuracies else "-"


def main() -> None:
    """Make the features, or the rows that are missing, or show the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", nargs="?", type=Path)
    parser.add_argument("--extract", nargs=2, metavar=("FOLDER", "FEATURES"))
    parser.add_argument("--views", type=int, default=DEFAULT_VIEWS)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--methods", default="slda,ranpac,fecam,ncm,eeil")
    parser.add_argument("--seeds", type=numbers, default=[0, 1, 2])
    parser.add_argument("--most", type=int, default=60)
    asked = parser.parse_args()
    if asked.extract:
        extract(asked.extract[0], Path(asked.extract[1]), asked.views)
        return
    if asked.table:
        print("\n".join(table(read(asked.table, Row))))
        return
    data, groups = asked.features.stem, images_of(asked.features)
    done = {(row.data, row.method, row.seed) for row in read(asked.out, Row)}
    for seed, method in product(asked.seeds, asked.methods.split(",")):
        if (data, method, seed) not in done:
            rows = [*follow(draw(groups, asked.most, seed), data, settings(method=method, seed=seed))]
            print(*rows, sep="\n", flush=True)
            add(asked.out, rows)


if __name__ == "__main__":
    main()
