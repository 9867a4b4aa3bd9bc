"""A classifier whose images change over time: what it knows of today's and of earlier images, by its exemplars' rule.

python benchmarks/drift.py --out NEW.csv [--rules keep,reservoir,recent] [--seeds 0,1,2] [--updates 20] [--memory 100]
    [--images 4] [--angles 0,90] [--set NAME=VALUE ...]
python benchmarks/drift.py --table NEW.csv

The images are scikit-learn's handwritten digits. The first update brings some images of every class; each later one
brings a few more of every class, turned a little further, up to the largest angle; at an angle of 0 the stream is
stationary. After each update the test images, turned as the update's were, give the accuracy on current images; after
the last update the test images turned as in every update before give the accuracy on earlier ones. What OUT has
already is not made again. The table has mean and deviation over seeds.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from functools import partial
from io import BytesIO
from itertools import product
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from sklearn.datasets import load_digits

from growing import add, numbers, read, values
from ssil.classifier.classifier_settings import ClassifierSettings, make_settings
from ssil.classifier.image_file import ImageFile, LabelledImages
from ssil.classifier.prediction import Classifier, predict
from ssil.classifier.update import update

SMALL = {"backbone": "resnet8", "image_size": 8, "grey": True, "flip": False, "epochs": 20, "later_epochs": 4}
FIRST = 20
"""The images of each class in the first update."""
TESTED = 20
"""The test images of each class."""


class Row(NamedTuple):
    """The accuracies of one stream in percent: on current images, averaged over updates, and on earlier ones."""

    angle: int
    rule: str
    seed: int
    updates: int
    memory: int
    images: int
    current: float
    earlier: float
    seconds: float


def turned(pixels: NDArray[np.uint8], angle: float, name: str) -> ImageFile:
    """Return an image of digits, twice as large and turned."""
    image = Image.fromarray(pixels).resize((16, 16), Image.Resampling.BILINEAR)
    file = BytesIO()
    image.rotate(angle, Image.Resampling.BILINEAR).save(file, "PNG")
    return ImageFile.from_bytes(name, file.getvalue())


class Digits:
    """The digits of one seed: images for training, class by class, and others for testing."""

    def __init__(self, seed: int) -> None:
        pixels, labels = load_digits(return_X_y=True)
        order = np.random.default_rng(seed).permutation(len(labels))
        scaled = (pixels * 15.9).astype(np.uint8).reshape(-1, 8, 8)
        by_class = [scaled[order[labels[order] == label]] for label in range(10)]
        self.test = [group[:TESTED] for group in by_class]
        self.train = [group[TESTED:] for group in by_class]

    def arriving(self, first: int, last: int, angle: float) -> LabelledImages:
        """Return training images of every class, by their position in it, turned."""
        return self._labelled([group[first:last] for group in self.train], angle)

    def tested(self, angle: float) -> LabelledImages:
        """Return the test images, turned."""
        return self._labelled(self.test, angle)

    def _labelled(self, groups: Sequence[NDArray[np.uint8]], angle: float) -> LabelledImages:
        return [(turned(one, angle, "digit"), str(label)) for label, group in enumerate(groups) for one in group]


def accuracy(classifier: Classifier, images: LabelledImages) -> float:
    """Return the accuracy in percent."""
    guesses = predict(classifier, [image for image, _ in images], top=1)
    return 100 * fmean(guess.ranking[0][0] == name for guess, (_, name) in zip(guesses, images, strict=True))


def follow(digits: Digits, settings: ClassifierSettings, angles: Sequence[float], images: int) -> tuple[float, float]:
    """Return the accuracy on current images, averaged over the updates, and that on earlier ones after the last."""
    classifier = update(None, settings, digits.arriving(0, FIRST, 0)).classifier
    current = []
    for number, angle in enumerate(angles):
        first = FIRST + number * images
        classifier = update(classifier, settings, digits.arriving(first, first + images, angle)).classifier
        current.append(accuracy(classifier, digits.tested(angle)))
    return fmean(current), fmean(accuracy(classifier, digits.tested(angle)) for angle in (0, *angles[:-1]))


def rows(given: argparse.Namespace) -> Iterator[Row]:
    """Yield the rows that are not there yet."""
    done = {row[:6] for row in read(Path(given.out), Row)}
    for seed, angle, rule in product(given.seeds, given.angles, given.rules.split(",")):
        key = angle, rule, seed, given.updates, given.memory, given.images
        if key in done:
            continue
        settings = make_settings({**SMALL, "seed": seed, "exemplars": rule, "memory": given.memory, **given.set})
        angles = [angle * (number + 1) / given.updates for number in range(given.updates)]
        began = time.monotonic()
        current, earlier = follow(Digits(seed), settings, angles, given.images)
        yield Row(*key, round(current, 2), round(earlier, 2), round(time.monotonic() - began, 1))


def table(found: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of a table in Markdown, one for each angle and rule."""
    yield "| last angle | exemplars | current images | earlier images |"
    yield "|---|---|---|---|"
    for angle, rule in dict.fromkeys((row.angle, row.rule) for row in sorted(found, key=lambda row: row.angle)):
        members = [row for row in found if (row.angle, row.rule) == (angle, rule)]
        shown = map(partial(_spread, members), ("current", "earlier"))
        yield f"| {angle}° | `{rule}` | {' | '.join(shown)} |"


def _spread(members: Sequence[Row], name: str) -> str:
    found = [getattr(row, name) for row in members]
    return f"{fmean(found):.1f} ± {stdev(found) if len(found) > 1 else 0:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--rules", default="keep,reservoir,recent")
    parser.add_argument("--seeds", type=numbers, default=[0, 1, 2])
    parser.add_argument("--angles", type=numbers, default=[0, 90])
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--memory", type=int, default=100)
    parser.add_argument("--images", type=int, default=4)
    parser.add_argument("--set", nargs="*", default=[])
    given = parser.parse_args()
    given.set = values(given.set)
    if given.out:
        for row in rows(given):
            add(given.out, [row])
            print(row, flush=True)
    print("\n".join(table(read(given.table or given.out, Row))))


if __name__ == "__main__":
    main()
