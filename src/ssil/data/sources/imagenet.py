"""ImageNet (ILSVRC 2012; Russakovsky et al., IJCV 2015), its subset of 100 classes, and Tiny ImageNet (2015)."""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np

from ssil.core.errors import UserError
from ssil.data.dataset import DatasetInfo
from ssil.data.image_index import ImageIndex, Preprocessing, Remark, read_text
from ssil.data.sources.folder import (
    ClassFiles,
    files_by_class,
    files_of_class,
    find_base,
    index_files,
    list_folder,
    unused,
)

URL = "https://www.image-net.org"
TINY_URL = "http://cs231n.stanford.edu/tiny-imagenet-200.zip"
INFOS = (
    DatasetInfo(
        "imagenet", "photographs: some 1,280 for training, 50 for testing per class", "1000", "224x224 colour", URL
    ),
    DatasetInfo("imagenet100", "the hundred classes of ImageNet that LUCIR uses", "100", "224x224 colour", URL),
    DatasetInfo(
        "tiny-imagenet", "photographs: 500 for training, 50 for testing per class", "200", "64x64 colour", TINY_URL
    ),
)

WNID = re.compile(r"n\d{8}")
NAMES = ("LOC_synset_mapping.txt", "words.txt")
PLACES = ("imagenet", "ILSVRC2012", "ILSVRC/Data/CLS-LOC", "")
SOLUTION = "LOC_val_solution.csv"
LABELS = ("imagenet_2012_validation_synset_labels.txt", "synset_labels.txt", "val_labels.txt")
NUMBERS = "ILSVRC2012_validation_ground_truth.txt"
DEVKIT = "ILSVRC2012_devkit_t12/data"
CURE = f"put {SOLUTION} (Kaggle's) or {LABELS[0]} (one wnid per line, in order of the files) beside val/"
CLASSES = 1000
TINY_PLACES = ("tiny-imagenet-200", "")
TINY_LABELS = "val/val_annotations.txt"


def imagenet(root: Path | None = None) -> ImageIndex:
    """Return ImageNet, or the classes of it that are there, in order of the wnids; validation images are for testing.

    It lies in imagenet/, ILSVRC2012/ or ILSVRC/Data/CLS-LOC/ of the data root, or in the root itself: train/ and val/
    with one folder per wnid. val/ may also be flat, with a file of its labels beside it or above it.
    """
    base = find_base(
        root, PLACES, ("train", "val"), "imagenet: put train/ (one folder per wnid) and val/ into a folder imagenet"
    )
    places = [base, *base.absolute().parents[:3]]
    train, remarks = files_by_class(base, "train", WNID.fullmatch)
    if not train:
        raise UserError(
            f"imagenet: {base / 'train'} has no folder named by a wnid; unpack the tar file of each class there"
        )
    test, more = _validation(base, places)
    return index_files("imagenet", base, Preprocessing(224), train, test, _titles(places), remarks + more)


def imagenet100(root: Path | None = None) -> ImageIndex:
    """Return the subset of LUCIR (Hou et al., CVPR 2019), used by PODNet (Douillard et al., ECCV 2020) and since.

    Of the wnids in sorted order it has those at the first hundred places of numpy's `RandomState(1993)` permutation of
    `range(1000)`.
    """
    whole = imagenet(root)
    if len(whole.classes) != CLASSES:
        raise UserError(
            f"imagenet100: it is drawn from all {CLASSES:,} classes of ImageNet, and {len(whole.classes):,} are there; "
            "get them all, or list the classes that you want in a file"
        )
    drawn = np.random.RandomState(1993).permutation(CLASSES)[:100]
    return replace(whole.pick(np.sort(drawn).tolist()), name="imagenet100")


def _titles(places: Iterable[Path]) -> dict[str, str]:
    """Return the first name of each wnid, from the first file of names in these places; empty without one."""
    path = next((place / name for place in places for name in NAMES if (place / name).is_file()), None)
    return {} if path is None else dict(map(_title, read_text(path).splitlines()))


def _title(line: str) -> tuple[str, str]:
    """Return the wnid and "tench" for "n01440764 tench, Tinca tinca"."""
    wnid, _, names = " ".join(line.split()).partition(" ")
    return wnid, names.partition(",")[0] or wnid


def _validation(base: Path, places: Sequence[Path]) -> tuple[ClassFiles, list[Remark]]:
    """Return the files of val/ by wnid, and remarks on those that have no wnid."""
    by_wnid, remarks = files_by_class(base, "val", WNID.fullmatch)
    if by_wnid:
        return by_wnid, remarks
    folders, files, remarks = list_folder(base, "val")
    wnids = _labels(places, files)
    classes: dict[str, list[str]] = {}
    for file in files:
        if file in wnids:
            classes.setdefault(wnids[file], []).append(f"val/{file}")
    remarks += [Remark(f"val/{file}", "has no label") for file in files if file not in wnids]
    return classes, remarks + unused("val", folders)


def _labels(places: Sequence[Path], files: Sequence[str]) -> Mapping[str, str]:
    """Return the wnid of each file in a flat val/."""
    path = next((place / name for name in (SOLUTION, *LABELS) for place in places if (place / name).is_file()), None)
    if path is None:
        raise _unlabelled(places)
    wnids = _kaggle_labels(path) if path.name == SOLUTION else _listed_labels(path, files)
    if not all(map(WNID.fullmatch, wnids.values())):
        raise UserError(f"imagenet: {path} has labels that are no wnids; {CURE}")
    return wnids


def _kaggle_labels(path: Path) -> Mapping[str, str]:
    """Return the wnid of each file in Kaggle's table: the first word of the prediction."""
    rows = csv.DictReader(StringIO(read_text(path)))
    try:
        return {f"{row['ImageId']}.JPEG": row["PredictionString"].split()[0] for row in rows}
    except (KeyError, IndexError, AttributeError) as error:
        raise UserError(f"imagenet: {path} is no table of ImageId,PredictionString; get it again") from error


def _listed_labels(path: Path, files: Sequence[str]) -> Mapping[str, str]:
    """Return the wnid of each file in a list that is in the files' order."""
    wnids = read_text(path).split()
    if len(wnids) != len(files):
        raise UserError(f"imagenet: {path} has {len(wnids):,} labels for {len(files):,} files in val/; {CURE}")
    return dict(zip(files, wnids, strict=True))


def _unlabelled(places: Sequence[Path]) -> UserError:
    numbers = [path for place in places for path in (place / NUMBERS, place / DEVKIT / NUMBERS) if path.is_file()]
    why = f"{numbers[0]} can't help, its numbers follow an order of its own" if numbers else "has no folders by wnid"
    return UserError(f"imagenet: {places[0] / 'val'} has no labels: {why}; {CURE}")


def tiny_imagenet(root: Path | None = None) -> ImageIndex:
    """Return Tiny ImageNet in order of the wnids, as unpacked from tiny-imagenet-200.zip.

    The validation images are for testing, because those of test/ have no labels.
    """
    base = find_base(root, TINY_PLACES, ("wnids.txt", "train", TINY_LABELS), f"tiny-imagenet: unpack {TINY_URL}")
    train, remarks = _tiny_train(base, sorted(set(read_text(base / "wnids.txt").split())))
    images, more = files_of_class(base, "val/images")
    wnids = _tiny_labels(base)
    test: dict[str, list[str]] = {}
    for file, wnid in wnids.items():
        test.setdefault(wnid, []).append(file)
    more += [Remark(file, f"has no line in {TINY_LABELS}") for file in images if file not in wnids]
    preprocessing = Preprocessing(64, augment="shift")
    return index_files("tiny-imagenet", base, preprocessing, train, test, _titles([base]), remarks + more)


def _tiny_train(base: Path, wnids: Sequence[str]) -> tuple[ClassFiles, list[Remark]]:
    """Return the training files of each class, and remarks on what else is in train/."""
    folders, files, remarks = list_folder(base, "train")
    remarks += unused("train", [name for name in (*folders, *files) if name not in wnids], "wnids.txt does not list it")
    classes = {}
    for wnid in wnids:
        classes[wnid], more = files_of_class(base, f"train/{wnid}/images")
        folders, files, _ = list_folder(base, f"train/{wnid}")
        others = [name for name in (*folders, *files) if name not in ("images", f"{wnid}_boxes.txt")]
        remarks += more + unused(f"train/{wnid}", others, "it is not in images/")
    return classes, remarks


def _tiny_labels(base: Path) -> dict[str, str]:
    """Return the wnid of each validation image: a line has the file, the wnid and a box."""
    lines = (line.split() for line in read_text(base / TINY_LABELS).splitlines() if line.strip())
    try:
        return {f"val/images/{file}": wnid for file, wnid, *_ in lines}
    except ValueError as error:
        raise UserError(
            f"tiny-imagenet: {base / TINY_LABELS} has lines without a wnid; unpack {TINY_URL} again"
        ) from error
