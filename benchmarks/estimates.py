"""How near the accuracy that `ssil learn` tells is to that on test images, after each update of the default.

python benchmarks/estimates.py FOLDER --out NEW.csv [--sizes 20,5,1,10,20,25] [--seeds 0]
python benchmarks/estimates.py --table NEW.csv
python benchmarks/estimates.py --rules FEATURES.npz [--seeds 0,1,2,3]
python benchmarks/estimates.py --folds FEATURES.npz [--seeds 0,1,2,3]
python benchmarks/estimates.py --cost FOLDER

FOLDER has train/ and test/ with one sub-folder per class. Classes arrive in an order that the seed draws, as many in
each update as `--sizes` says; the fourth update brings more images of two known classes too: a third of their images
is kept back for it. After each update, the accuracy that is told (by cross-validation, with its 95 % interval), that on
the hold-out set, and that on all test images of the classes so far are written. The table ends with the mean absolute
difference and the share of updates whose interval contains the accuracy on test images. Test images are a sample too:
"agree" says whether 0 is within the 95 % interval of the difference (Newcombe 1998, method 10), which has both errors.

`--rules` compares shares for the rule of near-duplicates on training images alone (features of `frozen_updates.py
--extract`): seven in ten are learnt, and the estimate by cross-validation stands beside the accuracy on the others.
`--folds` compares numbers of folds in the same way; there whole groups of near-duplicates are held back.
`--cost` learns FOLDER (one sub-folder per class) in two updates of half of the classes each, and tells which part of
the time goes into cross-validation. Reading the images and computing features are part of it, the export is not.
"""

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch

from frozen_updates import WEIGHTS
from growing import add, numbers, read
from ssil.classifier.accuracy import wilson
from ssil.classifier.classifier_settings import make_settings, with_start_settings, with_weights_settings
from ssil.classifier.cross_validation import (
    ValidatedImages,
    ValidatedUpdate,
    cross_validated,
    near_groups,
    validate_update,
)
from ssil.classifier.feature_extraction import trained_network
from ssil.classifier.holdout import evaluate, evaluate_scores, image_scores, validated_result
from ssil.classifier.image_file import ImageFile
from ssil.classifier.images import load_images
from ssil.classifier.near_duplicates import SHARE, feature_vectors
from ssil.classifier.prediction import Classifier
from ssil.classifier.update import update
from ssil.core.classes import ClassTable
from ssil.methods.slda import LinearDiscriminants
from ssil.nn.first_weights import read_first_weights
from ssil.nn.network import Output

SHARES, HELD_BACK = (2.0, 0.99, 0.95, 0.9), 0.3
"""The shares that `--rules` compares (with the first no two images are alike), and the part that is held back."""
FOLD_COUNTS = (5, 10, 20)
"""The numbers of folds that `--folds` compares."""
MORE = 3
"""The update, counted from 0, that brings more images of two known classes."""

Groups = dict[str, list[ImageFile]]


class Row(NamedTuple):
    """An update, and accuracies after it in percent."""

    data: str
    seed: int
    update: int
    classes: int
    told: float
    low: float
    high: float
    holdout: float
    truth: float
    images: int
    """On which the truth was measured."""


def images_of(folder: Path) -> Groups:
    """The images of each class, with the features that the default computes."""
    pairs = load_images(str(folder))[0]
    own = make_settings(with_weights_settings(with_start_settings({}, None, scratch=False)[0], WEIGHTS))
    network = trained_network(own, None, read_first_weights(WEIGHTS))
    (found,) = network.with_features([[image for image, _ in pairs]])
    groups: Groups = {}
    for image, (_, name) in zip(found, pairs, strict=True):
        groups.setdefault(name, []).append(image)
    return groups


def arrivals(train: Groups, sizes: Sequence[int], seed: int) -> Iterator[list[tuple[ImageFile, str]]]:
    """What each update brings."""
    random = Random(seed)
    names = random.sample(sorted(train), sum(sizes))
    late = {name: len(train[name]) * 2 // 3 for name in names[:2]} if len(sizes) > MORE else {}
    for number, size in enumerate(sizes):
        start = sum(sizes[:number])
        own = [(image, name) for name in names[start : start + size] for image in train[name][: late.get(name)]]
        more = [(image, name) for name, count in late.items() for image in train[name][count:]]
        yield own + (more if number == MORE else [])


def follow(data: str, train: Groups, test: Groups, sizes: Sequence[int], seed: int) -> Iterator[Row]:
    """Learn, and compare after each update."""
    own = make_settings(with_weights_settings(with_start_settings({"seed": seed}, None, scratch=False)[0], WEIGHTS))
    classifier: Classifier | None = None
    for number, arrived in enumerate(arrivals(train, sizes, seed), 1):
        result = update(classifier, own, arrived, init=None if classifier else read_first_weights(WEIGHTS))
        classifier, names = result.classifier, result.classifier.classes.names
        held = evaluate(classifier, classifier.holdout)
        truth = evaluate_final(classifier, test)
        assert result.after
        assert held
        told, interval = result.after.accuracy(names), result.after.interval(names)
        assert told is not None
        assert interval
        yield Row(data, seed, number, len(names), told, *interval, held.accuracy(names) or 0.0, *truth)


def evaluate_final(classifier: Classifier, test: Groups) -> tuple[float, int]:
    """The accuracy of the classifier that predicts on all test images of its classes, and their number."""
    names = classifier.classes.names
    found = evaluate_scores(classifier, image_scores(classifier, tuple(tuple(test[name]) for name in names)))
    total = found.result(names)
    return total.percent or 0.0, total.total


def rules(path: Path, seeds: Sequence[int]) -> Iterator[str]:
    """Markdown: for each share the estimate less the accuracy on images that were held back, over seeds."""
    data = np.load(path)
    features, labels = torch.from_numpy(data["features"]).float(), torch.from_numpy(data["labels"]).long()
    classes = ClassTable(tuple(map(str, range(int(labels.max()) + 1))), (0, int(labels.max()) + 1))
    found: dict[float, list[tuple[float, float]]] = {share: [] for share in SHARES}
    for seed in seeds:
        learnt = torch.rand(len(labels), generator=torch.Generator().manual_seed(seed)) > HELD_BACK
        scorer = fitted(features[learnt], labels[learnt], classes)
        others = features[~learnt]
        truth = (scorer(Output(others[:, :0], others), classes).argmax(1) == labels[~learnt]).double().mean()
        images = ValidatedImages.of(features[learnt], labels[learnt], torch.full_like(labels[learnt], -1))
        for share, values in found.items():
            made = cross_validated(scorer, classes, images, share)[0]
            values.append((100 * float((made.predicted == made.labels).double().mean()), 100 * float(truth)))
    yield "| share | estimate | held-back images | difference |"
    yield "|---|---|---|---|"
    for share, measured in found.items():
        told, true = (fmean(column) for column in zip(*measured, strict=True))
        yield f"| {share if share < 2 else 'none alike'} | {told:.1f} | {true:.1f} | {told - true:+.1f} |"


def folds(path: Path, seeds: Sequence[int]) -> Iterator[str]:
    """Markdown: for each number of folds the estimate beside the accuracy on groups that were held back, over seeds."""
    data = np.load(path)
    features, labels = torch.from_numpy(data["features"]).float(), torch.from_numpy(data["labels"]).long()
    classes = ClassTable(tuple(map(str, range(int(labels.max()) + 1))), (0, int(labels.max()) + 1))
    _, group = near_groups(feature_vectors(features), labels, SHARE).unique(return_inverse=True)
    found: dict[int, list[Row]] = {count: [] for count in FOLD_COUNTS}
    for seed in seeds:
        random = torch.Generator().manual_seed(seed)
        learnt = (torch.rand(int(group.max()) + 1, generator=random) > HELD_BACK)[group]
        scorer = fitted(features[learnt], labels[learnt], classes)
        others = features[~learnt]
        truth = (scorer(Output(others[:, :0], others), classes).argmax(1) == labels[~learnt]).double().mean()
        images = ValidatedImages.of(features[learnt], labels[learnt], torch.full_like(labels[learnt], -1))
        for count, rows in found.items():
            made = validated_result(cross_validated(scorer, classes, images, folds=count)[0], classes.names)
            assert made
            told, interval = made.accuracy(classes.names) or 0.0, made.interval(classes.names)
            assert interval
            known = (path.stem, seed, 1, classes.seen, told, *interval, 0.0)
            rows.append(Row(*known, 100 * float(truth), len(others)))
    yield "| folds | estimate less held-back images | mean absolute difference | covered | agree |"
    yield "|---|---|---|---|---|"
    for count, rows in found.items():
        differences = [row.told - row.truth for row in rows]
        inside = sum(row.low <= row.truth <= row.high for row in rows)
        cells = (f"{fmean(differences):+.1f}", f"{fmean(map(abs, differences)):.1f}", inside, sum(map(agree, rows)))
        yield f"| {count} | {' | '.join(map(str, cells))} |"


def cost(folder: Path) -> Iterator[str]:
    """Markdown: for two updates the seconds of a core in all, and in cross-validation."""
    pairs, spent = load_images(str(folder))[0], [0.0]

    def timed(*given: Any) -> ValidatedUpdate:
        began = time.process_time()
        found = validate_update(*given)
        spent.append(time.process_time() - began)
        return found

    names, classifier = sorted({name for _, name in pairs}), None
    own = make_settings(with_weights_settings(with_start_settings({}, None, scratch=False)[0], WEIGHTS))
    yield "| update | classes | images | seconds | of cross-validation | part |"
    yield "|---|---|---|---|---|---|"
    for number in range(2):
        arrived = [(image, name) for image, name in pairs if name in names[number::2]]
        began = time.process_time()
        with patch("ssil.classifier.update_accuracy.validate_update", timed):
            made = update(classifier, own, arrived, init=None if classifier else read_first_weights(WEIGHTS))
        seconds, classifier = time.process_time() - began, made.classifier
        cells = (number + 1, classifier.classes.seen, len(arrived), f"{seconds:.1f}", f"{spent[-1]:.1f}")
        yield f"| {' | '.join(map(str, cells))} | {100 * spent[-1] / seconds:.0f} % |"


def fitted(features: torch.Tensor, labels: torch.Tensor, classes: ClassTable) -> LinearDiscriminants:
    """The default's scorer, fitted to some images."""
    scorer = LinearDiscriminants()
    scorer.add(scorer.embed(features.double()), labels, classes.seen)
    scorer.solve()
    return scorer


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Markdown: a line for each update."""
    yield "| data | seed | update | classes | told | interval | hold-out set | test | difference | covered | agree |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for row in rows:
        both = ("yes" if row.low <= row.truth <= row.high else "no", "yes" if agree(row) else "no")
        cells = [row.data, row.seed, row.update, row.classes, f"{row.told:.1f}", f"{row.low:.0f} to {row.high:.0f}"]
        cells += [f"{row.holdout:.1f}", f"{row.truth:.1f} of {row.images}", f"{row.told - row.truth:+.1f}", *both]
        yield f"| {' | '.join(map(str, cells))} |"
    yield ""
    for data in dict.fromkeys(row.data for row in rows):
        own = [row for row in rows if row.data == data]
        told, held = (fmean(abs(value - row.truth) for row, value in pairs(own, name)) for name in ("told", "holdout"))
        inside = sum(row.low <= row.truth <= row.high for row in own)
        yield f"{data}: mean absolute difference {told:.1f} points ({held:.1f} by the hold-out set); the interval "
        yield f"contains the accuracy on test images in {inside} of {len(own)} updates, and with the error of the test "
        yield f"images both agree in {sum(map(agree, own))}."


def agree(row: Row) -> bool:
    """Whether the interval of the difference, from those of both accuracies, contains 0 (Newcombe 1998, method 10)."""
    test, difference = wilson(row.truth / 100, row.images), row.told - row.truth
    below = math.hypot(row.told - row.low, test.high - row.truth)
    above = math.hypot(row.high - row.told, row.truth - test.low)
    return -above <= difference <= below


def pairs(rows: Sequence[Row], name: str) -> list[tuple[Row, float]]:
    """Each row with one of its numbers."""
    return [(row, getattr(row, name)) for row in rows]


def main() -> None:
    """Measure, or show the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--rules", type=Path)
    parser.add_argument("--folds", type=Path)
    parser.add_argument("--cost", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--sizes", type=numbers, default=[20, 5, 1, 10, 20, 25])
    parser.add_argument("--seeds", type=numbers, default=[0])
    asked = parser.parse_args()
    for measure, path in ((rules, asked.rules), (folds, asked.folds)):
        if path:
            print("\n".join(measure(path, asked.seeds)))
            return
    if asked.cost:
        print("\n".join(cost(asked.cost)))
        return
    if asked.table:
        print("\n".join(table(read(asked.table, Row))))
        return
    train, test = (images_of(asked.folder / part) for part in ("train", "test"))
    for seed in asked.seeds:
        for row in follow(asked.folder.resolve().name, train, test, asked.sizes, seed):
            print(row, flush=True)
            add(asked.out, [row])


if __name__ == "__main__":
    main()
