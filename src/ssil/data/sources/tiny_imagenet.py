"""Tiny ImageNet (Stanford CS231n, 2015), as unpacked from tiny-imagenet-200.zip."""

from collections.abc import Sequence
from pathlib import Path

from ssil.core.errors import UserError
from ssil.data.dataset import DatasetInfo
from ssil.data.image_index import ImageIndex, Preprocessing, Remark
from ssil.data.sources.class_files import Groups, gather
from ssil.data.sources.file_tree import find, inside, members, text, unused
from ssil.data.sources.imagenet import titles

URL = "http://cs231n.stanford.edu/tiny-imagenet-200.zip"
INFO = DatasetInfo(
    "tiny-imagenet", "photographs: 500 for training, 50 for testing per class", "200", "64x64 colour", URL
)

FOLDER = "tiny-imagenet-200"
ANNOTATIONS = "val/val_annotations.txt"


def tiny_imagenet(root: Path | None = None) -> ImageIndex:
    """Tiny ImageNet in order of the wnids; the validation images are for testing, as those of test/ have no labels."""
    base = find(root, (FOLDER, ""), ("wnids.txt", "train", ANNOTATIONS), f"tiny-imagenet: unpack {URL}")
    train, remarks = _train(base, sorted(set(text(base / "wnids.txt").split())))
    images, more = members(base, "val/images")
    wnids = _annotations(base)
    test: dict[str, list[str]] = {}
    for file, wnid in wnids.items():
        test.setdefault(wnid, []).append(file)
    more += [Remark(file, f"has no line in {ANNOTATIONS}") for file in images if file not in wnids]
    return gather(
        "tiny-imagenet", base, Preprocessing(64, augment="shift"), train, test, titles([base]), remarks + more
    )


def _train(base: Path, wnids: Sequence[str]) -> tuple[Groups, list[Remark]]:
    """The training files of each class, and remarks on what else is there."""
    folders, files, remarks = inside(base, "train")
    remarks += unused("train", [name for name in (*folders, *files) if name not in wnids], "wnids.txt does not list it")
    groups = {}
    for wnid in wnids:
        groups[wnid], more = members(base, f"train/{wnid}/images")
        remarks += more + _beside(base, wnid)
    return groups, remarks


def _beside(base: Path, wnid: str) -> list[Remark]:
    """Remarks on what a class has, in train/, but its images and their boxes."""
    folders, files, _ = inside(base, f"train/{wnid}")
    others = [name for name in (*folders, *files) if name not in ("images", f"{wnid}_boxes.txt")]
    return unused(f"train/{wnid}", others, "it is not in images/")


def _annotations(base: Path) -> dict[str, str]:
    """The wnid of each validation image: a line has the file, the wnid and a box."""
    lines = (line.split() for line in text(base / ANNOTATIONS).splitlines() if line.strip())
    try:
        return {f"val/images/{file}": wnid for file, wnid, *_ in lines}
    except ValueError as error:
        raise UserError(f"tiny-imagenet: {base / ANNOTATIONS} has lines without a wnid; unpack {URL} again") from error
