"""ImageNet (ILSVRC 2012; Russakovsky et al., IJCV 2015), as unpacked from its own archives or from Kaggle's."""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np

from ssil.core.errors import UserError
from ssil.data.dataset import DatasetInfo
from ssil.data.image_index import ImageIndex, Preprocessing, Remark
from ssil.data.sources.class_files import Groups, gather
from ssil.data.sources.class_selection import pick
from ssil.data.sources.file_tree import classes, find, inside, text, unused

WNID = re.compile(r"n\d{8}")
NAMES = ("LOC_synset_mapping.txt", "words.txt")


def titles(places: Iterable[Path]) -> dict[str, str]:
    """The first name of each wnid, from the first file of names that lies in these places; empty without one."""
    path = next((place / name for place in places for name in NAMES if (place / name).is_file()), None)
    return {} if path is None else dict(map(_entry, text(path).splitlines()))


def _entry(line: str) -> tuple[str, str]:
    """From "n01440764 tench, Tinca tinca" to the wnid and "tench"."""
    wnid, _, names = " ".join(line.split()).partition(" ")
    return wnid, names.partition(",")[0] or wnid


URL = "https://www.image-net.org"
INFO = DatasetInfo(
    "imagenet", "photographs: some 1,280 for training, 50 for testing per class", "1000", "224x224 colour", URL
)
INFO_100 = DatasetInfo("imagenet100", "the hundred classes of ImageNet that LUCIR uses", "100", "224x224 colour", URL)

PLACES = ("imagenet", "ILSVRC2012", "ILSVRC/Data/CLS-LOC", "")
SOLUTION = "LOC_val_solution.csv"
LABELS = ("imagenet_2012_validation_synset_labels.txt", "synset_labels.txt", "val_labels.txt")
NUMBERS = "ILSVRC2012_validation_ground_truth.txt"
DEVKIT = "ILSVRC2012_devkit_t12/data"
CURE = f"put {SOLUTION} (Kaggle's) or {LABELS[0]} (a wnid a line, in order of the files) beside val/"
CLASSES = 1000


def imagenet(root: Path | None = None) -> ImageIndex:
    """All of ImageNet, or what there is of it, in order of the wnids; the validation images are for testing.

    It lies in imagenet/, ILSVRC2012/ or ILSVRC/Data/CLS-LOC/ of the data root, or in the root itself: train/ and val/
    with a folder a wnid. val/ may also be flat, with a file of its labels beside it or above it.
    """
    base = find(
        root, PLACES, ("train", "val"), "imagenet: put train/ (a folder a wnid) and val/ into a folder imagenet"
    )
    places = [base, *base.absolute().parents[:3]]
    train, remarks = classes(base, "train", WNID.fullmatch)
    if not train:
        raise UserError(
            f"imagenet: {base / 'train'} has no folder named by a wnid; unpack the tar file of each class there"
        )
    test, more = _validation(base, places)
    return gather("imagenet", base, Preprocessing(224), train, test, titles(places), remarks + more)


def imagenet100(root: Path | None = None) -> ImageIndex:
    """The subset of LUCIR (Hou et al., CVPR 2019), used by PODNet (Douillard et al., ECCV 2020) and since.

    Of the wnids in sorted order it takes those at the first hundred places of what numpy's `RandomState(1993)` makes of
    `range(1000)` by shuffling.
    """
    whole = imagenet(root)
    if len(whole.classes) != CLASSES:
        raise UserError(
            f"imagenet100: it is drawn from all {CLASSES:,} classes of ImageNet, and {len(whole.classes):,} are there; "
            "get them all, or list the classes that you want in a file"
        )
    drawn = np.random.RandomState(1993).permutation(CLASSES)[:100]
    return replace(pick(whole, np.sort(drawn).tolist()), name="imagenet100")


def _validation(base: Path, places: Sequence[Path]) -> tuple[Groups, list[Remark]]:
    """The files of val/ by wnid, and remarks on those that have none."""
    by_wnid, remarks = classes(base, "val", WNID.fullmatch)
    if by_wnid:
        return by_wnid, remarks
    folders, files, remarks = inside(base, "val")
    wnids = _labels(places, files)
    groups: dict[str, list[str]] = {}
    for file in files:
        if file in wnids:
            groups.setdefault(wnids[file], []).append(f"val/{file}")
    remarks += [Remark(f"val/{file}", "has no label") for file in files if file not in wnids]
    return groups, remarks + unused("val", folders)


def _labels(places: Sequence[Path], files: Sequence[str]) -> Mapping[str, str]:
    """The wnid of each file."""
    found = next((place / name for name in (SOLUTION, *LABELS) for place in places if (place / name).is_file()), None)
    if found is None:
        raise _unlabelled(places)
    wnids = _solution(found) if found.name == SOLUTION else _lines(found, files)
    if not all(map(WNID.fullmatch, wnids.values())):
        raise UserError(f"imagenet: {found} has labels that are no wnids; {CURE}")
    return wnids


def _solution(path: Path) -> Mapping[str, str]:
    """The wnid of each file by Kaggle's table: the first word of the prediction."""
    rows = csv.DictReader(StringIO(text(path)))
    try:
        return {f"{row['ImageId']}.JPEG": row["PredictionString"].split()[0] for row in rows}
    except (KeyError, IndexError, AttributeError) as error:
        raise UserError(f"imagenet: {path} is no table of ImageId,PredictionString; get it again") from error


def _lines(path: Path, files: Sequence[str]) -> Mapping[str, str]:
    """The wnid of each file by a list in their order."""
    wnids = text(path).split()
    if len(wnids) != len(files):
        raise UserError(f"imagenet: {path} has {len(wnids):,} labels for {len(files):,} files in val/; {CURE}")
    return dict(zip(files, wnids, strict=True))


def _unlabelled(places: Sequence[Path]) -> UserError:
    numbers = [path for place in places for path in (place / NUMBERS, place / DEVKIT / NUMBERS) if path.is_file()]
    why = f"{numbers[0]} can't help, its numbers follow an order of its own" if numbers else "has no folders by wnid"
    return UserError(f"imagenet: {places[0] / 'val'} has no labels: {why}; {CURE}")
