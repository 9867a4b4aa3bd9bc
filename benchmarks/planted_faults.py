"""How many planted faults `ssil learn` tells, and how many of those that it tells are planted.

python benchmarks/planted_faults.py FOLDER [--seeds 0,1,2] [--most 40]
python benchmarks/planted_faults.py --rules FOLDER [--seeds 0,1,2] [--most 40]

FOLDER has a sub-folder of training images for each class, of which `--most` are used. For each seed these are planted
in it: 3 % of the labels are swapped for other classes; 20 images are copied into a second class, and 10 are encoded
anew there (JPEG of quality 60, nine tenths of the size); 5 images are blurred (by 2 % of the short side) and 5 darkened
(to a quarter); and one class is divided at random into two names. All goes through the update of `ssil learn` and its
advice. Printed is a Markdown table: what was planted, told, and both, precision and recall, over all seeds. What is
wrong in the images themselves counts as a false alarm. `--rules` compares thresholds instead, and for labels also that
of confident learning.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from random import Random
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageEnhance, ImageFilter

from frozen_updates import WEIGHTS, settings
from growing import numbers
from ssil.classifier.advice import advise as advising
from ssil.classifier.advice import doubtful_classes, doubtful_images
from ssil.classifier.advice.advise import Advice, advise
from ssil.classifier.advice.image_measures import ImageMeasures, measure_images
from ssil.classifier.advice.leave_one_out import LeftOut, likeliest_temperature, probabilities
from ssil.classifier.feature_extraction import trained_network
from ssil.classifier.image_file import ImageFile, LabelledImages
from ssil.classifier.images import load_images
from ssil.classifier.update import update
from ssil.nn.first_weights import read_first_weights

SWAPPED, COPIES, ENCODED, BLURRED, DARK = 0.03, 20, 10, 5, 5
Told = set[tuple[str, str]]
"""Images by file name and class, or pairs of classes."""


class Count(NamedTuple):
    """Faults that were planted, told, and both."""

    planted: int
    told: int
    both: int

    @classmethod
    def of(cls, planted: Told, told: Told) -> "Count":
        """Compare two sets."""
        return cls(len(planted), len(told), len(planted & told))

    def __str__(self) -> str:
        precision = f"{self.both / self.told:.2f}" if self.told else "-"
        recall = f"{self.both / self.planted:.2f}" if self.planted else "-"
        return f"{self.planted} | {self.told} | {self.both} | {precision} | {recall}"


@dataclass(frozen=True)
class Planted:
    """Images with faults, and what the faults are."""

    images: LabelledImages
    faults: dict[str, Told]


def planted(images: LabelledImages, seed: int) -> Planted:
    """Plant faults in other images each."""
    random = Random(seed)
    names = sorted({name for _, name in images})
    divided = random.choice(names)
    images = [(image, f"{name} again" if name == divided and random.random() < 0.5 else name) for image, name in images]
    rows = random.sample(
        [row for row, (_, name) in enumerate(images) if not name.startswith(divided)], len(images) // 2
    )
    faults: dict[str, Told] = {"alike": {(divided, f"{divided} again")}}

    def changed(kind: str, count: int, change: Callable[[ImageFile, str], tuple[ImageFile, str]]) -> None:
        chosen = [rows.pop() for _ in range(count)]
        made = [change(*images[row]) for row in chosen]
        faults[kind] = {(image.name, name) for image, name in made}
        for row, one in zip(chosen, made, strict=True):
            images[row] = one

    def other(name: str) -> str:
        return random.choice([one for one in names if one not in (name, divided)])

    changed("wrong class", round(SWAPPED * len(images)), lambda image, name: (image, other(name)))
    changed("blurred", BLURRED, lambda image, name: (altered(image, blurred), name))
    changed("dark", DARK, lambda image, name: (altered(image, darkened), name))
    for kind, count in (("same", COPIES), ("nearly same", ENCODED)):
        twins = [images[rows.pop()] for _ in range(count)]
        faults[kind] = {(image.name, "") for image, _ in twins}
        images += [(image if kind == "same" else altered(image, smaller, 60), other(name)) for image, name in twins]
    return Planted(images, faults)


def altered(image: ImageFile, change: Callable[[Image.Image], Image.Image], quality: int = 92) -> ImageFile:
    """The image with changed pixels, under the same name."""
    file = BytesIO()
    change(Image.open(BytesIO(image.read())).convert("RGB")).save(file, "JPEG", quality=quality)
    return ImageFile.from_bytes(image.name, file.getvalue())


def blurred(image: Image.Image) -> Image.Image:
    """Out of focus."""
    return image.filter(ImageFilter.GaussianBlur(0.02 * min(image.size)))


def darkened(image: Image.Image) -> Image.Image:
    """Under-exposed."""
    return ImageEnhance.Brightness(image).enhance(0.25)


def smaller(image: Image.Image) -> Image.Image:
    """Nine tenths of the size."""
    return image.resize((image.width * 9 // 10, image.height * 9 // 10))


def told(advice: Advice) -> dict[str, Told]:
    """What advice tells, in the form of `Planted.faults`."""
    found: dict[str, Told] = {kind: set() for kind in advising.KINDS} | {
        "alike": {(min(pair[:2]), max(pair[:2])) for pair in advice.alike}
    }
    for one in advice.suspects:
        found[one.kind].add((one.image.name, "" if one.twin else one.label))
    return found


def with_features(images: LabelledImages, most: int | None) -> LabelledImages:
    """At most so many images of each class, with features, so that these are computed once for all seeds."""
    counts: Counter[str] = Counter()
    chosen = [pair for pair in images if not counts.update([pair[1]]) and counts[pair[1]] <= (most or len(images))]
    network = trained_network(settings(), None, read_first_weights(WEIGHTS))
    (found,) = network.with_features([[image for image, _ in chosen]])
    return [(image, name) for image, (_, name) in zip(found, chosen, strict=True)]


def judged(images: LabelledImages, seeds: Sequence[int]) -> Iterator[str]:
    """Yield the lines of the table of all kinds of faults."""
    counts: dict[str, list[Count]] = {}
    for seed in seeds:
        made = planted(images, seed)
        result = update(None, settings(method="slda", seed=seed), made.images, init=read_first_weights(WEIGHTS))
        found = told(advise(None, result))
        for kind in found:
            counts.setdefault(kind, []).append(Count.of(made.faults.get(kind, set()), found[kind]))
    yield "| fault | planted | told | both | precision | recall |\n|---|---|---|---|---|---|"
    yield from (f"| {kind} | {added(parts)} |" for kind, parts in counts.items())


def added(counts: Iterable[Count]) -> Count:
    """The sum over seeds."""
    return Count(*map(sum, zip(*counts, strict=True)))


class Examined(NamedTuple):
    """A planted set with its statistics, for rules of other thresholds."""

    made: Planted
    names: list[str]
    labels: torch.Tensor
    statistics: LeftOut
    judgement: doubtful_images.Judgement
    measures: ImageMeasures


def examined(images: LabelledImages, seed: int) -> Examined:
    """Plant faults, and examine all images without an update."""
    made = planted(images, seed)
    network = trained_network(settings(), None, read_first_weights(WEIGHTS))
    (found,) = network.with_features([[image for image, _ in made.images]])
    names = sorted({name for _, name in made.images})
    labels = torch.tensor([names.index(name) for _, name in made.images])
    features = torch.stack([image.features() for image in found if image.features])
    statistics = LeftOut.of(features, labels)
    measures = measure_images(found)
    return Examined(made, names, labels, statistics, doubtful_images.judge(statistics), measures)


def below_guessing(factor: float, one: Examined) -> NDArray[np.bool_]:
    """Labels whose odds are so many times below those of a blind guess."""
    return one.judgement.odds > factor


def confident_learning(one: Examined) -> NDArray[np.bool_]:
    """Labels that confident learning (Northcutt et al. 2021) calls wrong: off the diagonal of the confident joint."""
    distances = one.statistics.distances(torch.arange(len(one.labels)))
    chances = probabilities(distances, likeliest_temperature(one.statistics))
    rows = torch.arange(len(one.labels))
    own = chances[rows, one.labels]
    sums = torch.zeros(len(one.names), dtype=own.dtype).index_add_(0, one.labels, own)
    confident = torch.where(chances >= sums / one.statistics.counts, chances, 0.0)
    return np.asarray((confident.amax(1) > 0) & (confident.argmax(1) != one.labels))


def rules(images: LabelledImages, seeds: Sequence[int]) -> Iterator[str]:
    """Yield the lines of tables of thresholds."""
    sets = [examined(images, seed) for seed in seeds]
    yield "| rule | planted | told | both | precision | recall |\n|---|---|---|---|---|---|"
    yield line("label: confident learning", sets, "wrong class", confident_learning)
    for factor in (1, 2, 4, 8, 16, 32):
        name = f"label: odds {factor} times below guessing"
        yield line(name, sets, "wrong class", partial(below_guessing, factor))
    for least in (-0.6, -0.9, -1.2, -1.5, -1.8):
        doubtful_images.BLURRED = least
        yield line(
            f"blurred: sharpness {least}",
            sets,
            "blurred",
            lambda one: doubtful_images.blurred_images(one.measures, one.labels),
        )
    for part in (0.3, 0.36, 0.42, 0.5, 0.6):
        doubtful_images.DARK = part
        yield line(
            f"dark: brightness {part}", sets, "dark", lambda one: doubtful_images.dark_images(one.measures, one.labels)
        )
    for share in (0.25, 0.3, 0.35, 0.4, 0.45, 0.5):
        doubtful_classes.ALIKE = share
        yield f"| alike: share {share} | {added(alike(one) for one in sets)} |"


def line(name: str, sets: Sequence[Examined], kind: str, rule: Callable[[Examined], NDArray[np.bool_]]) -> str:
    """A line about a rule for images."""
    counts = []
    for one in sets:
        flagged = {
            (image.name, label) for image, label in (one.made.images[row] for row in rule(one).nonzero()[0].tolist())
        }
        twins = {name for kind in ("same", "nearly same") for name, _ in one.made.faults[kind]}
        counts.append(Count.of(one.made.faults[kind], {pair for pair in flagged if pair[0] not in twins}))
    return f"| {name} | {added(counts)} |"


def alike(one: Examined) -> Count:
    """Pairs of classes that look like one."""
    pairs = doubtful_classes.alike_classes(one.judgement.nearer, torch.bincount(one.labels).tolist())
    return Count.of(one.made.faults["alike"], {(one.names[pair.first], one.names[pair.second]) for pair in pairs})


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--rules", action="store_true")
    parser.add_argument("--seeds", type=numbers, default=[0, 1, 2])
    parser.add_argument("--most", type=int)
    asked = parser.parse_args()
    images = with_features(load_images(asked.folder)[0], asked.most)
    for text in (rules if asked.rules else judged)(images, asked.seeds):
        print(text, flush=True)


if __name__ == "__main__":
    main()
