"""A classifier that learns new classes week by week: accuracy on test images, seconds and bytes kept, by method.

python benchmarks/weeks.py FOLDER WEEKS --out NEW.csv [--rows default,ncm] [--seeds 0,1,2] [--most 100]
    [--features CACHE.npz] [--maps CACHE.npz --views 4] [--label TEXT] [--set NAME=VALUE ...]
python benchmarks/weeks.py --table NEW.csv

FOLDER has train/ and test/ with a sub-folder for each class. WEEKS are the numbers of classes that each week brings, in
an order drawn by the seed: 20,5,1,10+2,20,25. With `+2` the week also brings the second half of the images of two
classes of the first week. Each week is an update of `ssil learn` with its hold-out set, under its own settings but for
those of the row (see `ROWS`) and those `--set`; `joint` learns all images so far anew each week. All test images of the
classes so far judge. CACHE keeps the features of frozen backbones from run to run. With `--maps`, rows that tune the
last stage train on stored maps of so many random views of each image, ten times as fast (see `stored_views.py`). Each
week is written at once, and weeks that OUT has already are not written again.

The table has a line for each data set and row: after each week the accuracy on the test images of all classes, in
brackets on those of classes that were known before and of those that the week brought, as means (and deviation) over
seeds; the seconds of an update after the first (if there is one), without features; and the megabytes that the last
week leaves: images (exemplars and hold-out set), and numbers (statistics or head, without the backbone).
"""

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain, product
from math import isnan, nan
from pathlib import Path
from random import Random
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
import torch

from growing import add, album, numbers, read, values
from ssil.classifier.classifier_settings import ClassifierSettings, make_settings
from ssil.classifier.feature_extraction import trained_network
from ssil.classifier.holdout import evaluate_scores, image_scores
from ssil.classifier.image_file import ImageFile, LabelledImages
from ssil.classifier.prediction import Classifier
from ssil.classifier.publish_update import first_settings
from ssil.classifier.update import update
from ssil.learning.model_state import snapshot_tensors
from ssil.nn.pretrained import Pretrained
from stored_views import Views, tuned_on_maps

ROWS: dict[str, dict[str, Any]] = {
    "default": {},
    "ncm": {"method": "ncm"},
    "fecam": {"method": "fecam"},
    "ranpac": {"method": "ranpac"},
    "eeil-head": {"method": "eeil"},
    "ssil-head": {"method": "ssil"},
    "joint-head": {"method": "ft"},
    "eeil-tuned": {"method": "eeil", "tune": "last"},
    "ssil-tuned": {"method": "ssil", "tune": "last"},
    "joint-tuned": {"method": "ft", "tune": "last"},
    "eeil-scratch": {"method": "eeil"},
    "ssil-scratch": {"method": "ssil"},
}
"""The options of `ssil learn` in each row; `-scratch` adds --scratch, `joint-` learns everything anew each week."""

Album = Mapping[str, Sequence[ImageFile]]


class Row(NamedTuple):
    """A classifier after a week: accuracies in percent, seconds of the update, bytes that are kept."""

    data: str
    row: str
    seed: int
    week: int
    classes: int
    all: float
    old: float
    new: float
    seconds: float
    images: int
    numbers: int


class Week(NamedTuple):
    """The images that arrive, and the classes that were known before and are new."""

    arrived: LabelledImages
    old: tuple[str, ...]
    new: tuple[str, ...]


class Features:
    """The features of frozen backbones by an image's checksum, kept in a file."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        data = np.load(path) if path and path.exists() else {"digests": (), "features": ()}
        self.known = dict(zip(data["digests"], data["features"], strict=True))

    def attach(self, groups: Album, settings: ClassifierSettings, weights: Pretrained | None) -> Album:
        """Return the images with their features; those that are missing are computed, and the rate is printed."""
        missing = [image for group in groups.values() for image in group if image.digest not in self.known]
        if missing:
            began = time.monotonic()
            (found,) = trained_network(settings, None, weights).with_features([missing])
            print(f"features: {len(missing)} images, {1000 * (time.monotonic() - began) / len(missing):.1f} ms each")
            self.known |= {image.digest: image.features().numpy() for image in found if image.features}
            self._save()
        return {
            name: [image.with_features(torch.from_numpy(self.known[image.digest])) for image in group]
            for name, group in groups.items()
        }

    def _save(self) -> None:
        if self.path:
            np.savez(self.path, digests=[*self.known], features=np.stack([*self.known.values()]))


def start(row: str, given: Mapping[str, Any]) -> tuple[ClassifierSettings, Pretrained | None]:
    """Return the settings and first weights of a row, as `ssil learn` makes them of its options."""
    options, weights = first_settings({**ROWS[row], **given}, None, scratch=row.endswith("-scratch"))
    return make_settings(options), weights


def plan(train: Album, weeks: Sequence[str], seed: int) -> list[Week]:
    """Draw what each week brings."""
    random = Random(seed)
    sizes = [(int(size), int(more or 0)) for size, _, more in (week.partition("+") for week in weeks)]
    names = random.sample(sorted(train), sum(size for size, _ in sizes))
    drawn = {name: random.sample(list(train[name]), len(train[name])) for name in names}
    halved = names[: max(more for _, more in sizes)]
    first = {name: drawn[name][: len(drawn[name]) // (2 if name in halved else 1)] for name in names}
    found, at = list[Week](), 0
    for size, more in sizes:
        new = names[at : at + size]
        rest = [(image, name) for name in halved[:more] for image in drawn[name][len(first[name]) :]]
        arrived = [(image, name) for name in new for image in first[name]]
        found.append(Week([*arrived, *rest], tuple(names[:at]), tuple(new)))
        at += size
    return found


def follow(
    weeks: Sequence[Week], settings: ClassifierSettings, weights: Pretrained | None, *, joint: bool
) -> Iterator[tuple[Classifier, float]]:
    """Yield the classifier after each week, and the seconds that the update took."""
    classifier: Classifier | None = None
    images: list[tuple[ImageFile, str]] = []
    for week in weeks:
        images = [*(images if joint else ()), *week.arrived]
        before, began = None if joint else classifier, time.monotonic()
        classifier = update(before, settings, images, init=None if before else weights).classifier
        yield classifier, time.monotonic() - began


def accuracies(classifier: Classifier, test: Album, week: Week) -> tuple[float, float, float]:
    """Return the accuracy on the test images of all classes so far, of the old and of the new ones."""
    images = tuple(tuple(test[name]) for name in classifier.classes.names)
    result = evaluate_scores(classifier, image_scores(classifier, images))
    found = (result.accuracy(names) for names in ((*week.old, *week.new), week.old, week.new))
    all_, old, new = (nan if value is None else value for value in found)
    return all_, old, new


def kept(classifier: Classifier) -> tuple[int, int]:
    """Return the bytes of the images that are kept, and of the numbers that are not the backbone's."""
    images = sum(
        len(image.read())
        for groups in (classifier.exemplars, classifier.holdout)
        for group in groups
        for image in group
    )
    tensors = snapshot_tensors(classifier.snapshot).items()
    return images, sum(tensor.nbytes for name, tensor in tensors if not name.startswith("network/backbone."))


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield Markdown tables, one for each data set; the best row first."""
    for data in dict.fromkeys(row.data for row in rows):
        here = [row for row in rows if row.data == data]
        groups = {name: [row for row in here if row.row == name] for name in dict.fromkeys(row.row for row in here)}
        classes = {row.week: row.classes for row in sorted(here)}
        weeks = " | ".join(f"{classes[week]} classes" for week in sorted(classes))
        yield f"| {data} | seeds | {weeks} | s | images, MB | numbers, MB |"
        yield "|---|---|" + "---|" * (len(classes) + 3)
        for name in sorted(groups, key=lambda name: -last_accuracy(groups[name])):
            yield line(name, groups[name], sorted(classes))
        yield ""


def last_accuracy(group: Sequence[Row]) -> float:
    """Return the week that a row has reached, and its accuracy then, as one number to sort by."""
    last = max(row.week for row in group)
    return 1000 * last + fmean(row.all for row in group if row.week == last)


def line(name: str, group: Sequence[Row], weeks: Sequence[int]) -> str:
    """Return a row of a table."""
    last = [row for row in group if row.week == max(row.week for row in group)]
    seconds = fmean([row.seconds for row in group if row.week > 1] or [row.seconds for row in last])
    sizes = (fmean(getattr(row, kind) for row in last) / 1e6 for kind in ("images", "numbers"))
    cells = [cell([row for row in group if row.week == week]) for week in weeks]
    return " | ".join([f"| {name}", str(len(last)), *cells, *(f"{value:.1f}" for value in (seconds, *sizes))]) + " |"


def cell(rows: Sequence[Row]) -> str:
    """Return the accuracy on all classes, in brackets on old and new ones, over seeds."""
    if not rows:
        return "-"
    spread = f" ± {stdev(row.all for row in rows):.1f}" if len(rows) > 1 else ""
    old, new = (fmean(getattr(row, kind) for row in rows) for kind in ("old", "new"))
    return f"{fmean(row.all for row in rows):.1f}{spread}" + ("" if isnan(old) else f" ({old:.1f}, {new:.1f})")


def measured(weeks: Sequence[Week], test: Album, row: str, given: Mapping[str, Any]) -> Iterator[Row]:
    """Yield a row's results after each week."""
    settings, weights = start(row, given)
    learnt = follow(weeks, settings, weights, joint=row.startswith("joint-"))
    for number, (week, (classifier, seconds)) in enumerate(zip(weeks, learnt, strict=True), start=1):
        every, old, new = (round(value, 3) for value in accuracies(classifier, test, week))
        place = "", row, settings.seed, number, classifier.classes.seen
        yield Row(*place, every, old, new, round(seconds, 2), *kept(classifier))


def main() -> None:
    """Make the rows that are missing, or show the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("weeks", nargs="?")
    parser.add_argument("--table", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rows", default="default,ncm,fecam,ranpac,eeil-head,ssil-head,joint-head")
    parser.add_argument("--seeds", type=numbers, default=[0, 1, 2])
    parser.add_argument("--most", type=int)
    parser.add_argument("--features", type=Path)
    parser.add_argument("--maps", type=Path)
    parser.add_argument("--views", type=int, default=4)
    parser.add_argument("--label", default="", help="added to the names of the rows, where --set is not that of others")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    asked = parser.parse_args()
    if asked.table:
        print("\n".join(table(read(asked.table, Row))))
        return
    make(asked, values(asked.set))


def on_maps(asked: argparse.Namespace, row: str, train: Album, test: Album) -> AbstractContextManager[None]:
    """Return the context in which a row tunes the last stage on stored maps, if that was asked for."""
    settings, weights = start(row, {})
    if not asked.maps or settings.tune != "last" or not weights:
        return nullcontext()
    views = Views(asked.maps, settings, weights)
    for groups, training in ((train, asked.views), (test, 0)):
        views.add([*chain.from_iterable(groups.values())], training)
    return tuned_on_maps(views)


def make(asked: argparse.Namespace, given: Mapping[str, Any]) -> None:
    """Make the rows that are missing, and write each week as soon as it is measured."""
    data, features = asked.folder.name, Features(asked.features)
    train, test = (album(asked.folder / part) for part in ("train", "test"))
    train = {name: sorted(group, key=lambda image: image.digest)[: asked.most] for name, group in train.items()}
    done = {(row.data, row.row, row.seed, row.week) for row in read(asked.out, Row)}
    for seed, row in product(asked.seeds, asked.rows.split(",")):
        name, sizes = f"{row}-{asked.label}" if asked.label else row, asked.weeks.split(",")
        if all((data, name, seed, week) in done for week in range(1, len(sizes) + 1)):
            continue
        settings, weights = start(row, given)
        both = [features.attach(groups, settings, weights) if settings.freeze else groups for groups in (train, test)]
        with on_maps(asked, row, *both):
            for found in measured(plan(both[0], sizes, seed), both[1], row, {**given, "seed": seed}):
                print(named := found._replace(data=data, row=name), flush=True)
                add(asked.out, [] if (data, name, seed, found.week) in done else [named])


if __name__ == "__main__":
    main()
