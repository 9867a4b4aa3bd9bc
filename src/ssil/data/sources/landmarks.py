"""Google Landmarks v2 (Weyand et al., CVPR 2020): the classes with most images, as in the SS-IL paper."""

import csv
from io import StringIO
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import torch
from pyarrow import ArrowException, Table, array, compute, int64, string
from pyarrow.csv import ConvertOptions, read_csv

from ssil.core.errors import UserError
from ssil.core.randomness import Randomness
from ssil.data.dataset import DatasetInfo
from ssil.data.image_index import ImageIndex, Labels, Preprocessing, read_text
from ssil.data.sources.folder import find_base, index_files

URL = "https://github.com/cvdfoundation/google-landmark"
INFOS = (
    DatasetInfo("landmark-v2-1k", "photographs of landmarks: 50 for testing per class", "1000", "224x224 colour", URL),
    DatasetInfo(
        "landmark-v2-10k", "photographs of landmarks: 10 for testing per class", "10000", "224x224 colour", URL
    ),
)

PLACES = ("landmark-v2", "gldv2", "google-landmarks-v2", "")
PREPROCESSING = Preprocessing(
    224, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0)
)  # the authors' code keeps pixels in [0, 1]


def landmarks(
    root: Path | None,
    classes: int,
    test_per_class: int,
    seed: int,
    max_per_class: int | None = None,
    min_per_class: int | None = None,
) -> ImageIndex:
    """Return the `classes` landmarks with most images, in order of their ids.

    The paper's sets have 1,000 classes with 50 test images, and 10,000 with 10.

    Args:
        root: The data root.
        classes: The number of classes.
        test_per_class: The number of test images of each class, drawn by the seed.
        seed: The seed of the test part.
        max_per_class: The largest number of training images of a class.
        min_per_class: The smallest number of images of a class; one more than `test_per_class` at least.
    """
    base = find_base(
        root, PLACES, ("train.csv", "train"), "landmark-v2: put train.csv and train/ into a folder landmark-v2"
    )
    table = _table(base / "train.csv")
    chosen = _largest(table["landmark_id"].to_numpy(), classes, max(min_per_class or 0, test_per_class + 1))
    members = _members(table, chosen)
    shuffled = {key: _shuffle(files, Randomness(seed).at("landmark test", key)) for key, files in members.items()}
    test = {key: sorted(files[:test_per_class]) for key, files in shuffled.items()}
    train = {key: sorted(files[test_per_class:][:max_per_class]) for key, files in shuffled.items()}
    name = f"landmark-v2-{classes // 1000}k" if classes % 1000 == 0 else f"landmark-v2-{classes}"
    return index_files(name, base, PREPROCESSING, train, test, _titles(base))


def _table(path: Path) -> Table:
    """Return the ids of all images, once each, with the ids of their landmarks."""
    wanted = ConvertOptions(
        include_columns=["id", "landmark_id"], column_types={"id": string(), "landmark_id": int64()}
    )
    try:
        table = read_csv(path, convert_options=wanted).group_by(["id", "landmark_id"]).aggregate([])
    except (OSError, ArrowException, KeyError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"landmark-v2: {path} is no table of id,url,landmark_id ({reason}); get it again") from error
    count = table.group_by("id").aggregate([("landmark_id", "count")])
    if len(twice := count.filter(compute.greater(count["landmark_id_count"], 1))):
        raise UserError(f"landmark-v2: {path} has several landmarks for image {twice['id'][0]}; get it again")
    return table


def _largest(labels: Labels, count: int, least: int) -> Labels:
    """Return the `count` landmarks with most images, at least `least` each; among equals, those with smaller ids."""
    ids, sizes = np.unique(labels, return_counts=True)
    ids, sizes = ids[sizes >= least], sizes[sizes >= least]
    if len(ids) < count:
        raise UserError(f"classes: {count:,} is too many, {len(ids):,} landmarks have {least:,} or more images")
    return np.sort(ids[np.argsort(-sizes, kind="stable")[:count]])


def _members(table: Table, chosen: Labels) -> dict[str, list[str]]:
    """Return the files of each chosen landmark in order of their ids, whatever the order of the rows."""
    table = table.filter(compute.is_in(table["landmark_id"], array(chosen))).sort_by("id")
    members: dict[str, list[str]] = {str(landmark): [] for landmark in chosen}
    for landmark, name in zip(table["landmark_id"].to_pylist(), table["id"].to_pylist(), strict=True):
        members[str(landmark)].append(f"train/{'/'.join(name[:3])}/{name}.jpg")
    return members


def _shuffle(files: list[str], generator: torch.Generator) -> list[str]:
    return [files[index] for index in torch.randperm(len(files), generator=generator).tolist()]


def _titles(base: Path) -> dict[str, str]:
    path = base / "train_label_to_category.csv"
    if not path.is_file():
        return {}
    try:
        return {row["landmark_id"]: title(row["category"]) for row in csv.DictReader(StringIO(read_text(path)))}
    except (KeyError, AttributeError) as error:
        raise UserError(
            f"landmark-v2: {path} is no table of landmark_id,category; get it again or remove it"
        ) from error


def title(category: str) -> str:
    """Return a landmark's name from the address of its category.

    >>> title("http://commons.wikimedia.org/wiki/Category:Haus_Bichler")
    'Haus Bichler'
    """
    _, marked, name = category.rpartition("Category:")
    return unquote(name if marked else category.rpartition("/")[2]).replace("_", " ")
