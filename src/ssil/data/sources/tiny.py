"""Tiny ImageNet (Stanford CS231n, 2015), as unpacked from tiny-imagenet-200.zip."""

from pathlib import Path

from ssil.data.dataset import Info
from ssil.data.listing import Listing, Look, Remark
from ssil.data.sources.gather import gather
from ssil.data.sources.tree import entries, find
from ssil.data.sources.wordnet import titles
from ssil.errors import UserError

URL = "http://cs231n.stanford.edu/tiny-imagenet-200.zip"
INFO = Info("tiny-imagenet", "photographs: 500 for training, 50 for testing per class", "200", "64x64 colour", URL)

FOLDER = "tiny-imagenet-200"
ANNOTATIONS = "val/val_annotations.txt"


def tiny_imagenet(root: Path | None = None) -> Listing:
    """Tiny ImageNet in order of the wnids; the validation images are for testing, as those of test/ have no labels."""
    base = find(root, (FOLDER, ""), ("wnids.txt", "train", ANNOTATIONS), f"tiny-imagenet: unpack {URL}")
    train = {wnid: _train(base, wnid) for wnid in sorted((base / "wnids.txt").read_text().split())}
    wnids = _annotations(base)
    test: dict[str, list[str]] = {}
    for file, wnid in wnids.items():
        test.setdefault(wnid, []).append(f"val/images/{file}")
    loose = [file for file in entries(base / "val/images")[1] if file not in wnids]
    remarks = [Remark(f"val/images/{file}", f"has no line in {ANNOTATIONS}") for file in loose]
    return gather("tiny-imagenet", base, Look(64, augment="shift"), train, test, titles([base]), remarks)


def _train(base: Path, wnid: str) -> list[str]:
    folder = f"train/{wnid}/images"
    return [f"{folder}/{file}" for file in entries(base / folder)[1]] if (base / folder).is_dir() else []


def _annotations(base: Path) -> dict[str, str]:
    """The wnid of each validation image: a line has the file, the wnid and a box."""
    lines = (base / ANNOTATIONS).read_text().splitlines()
    try:
        return dict(line.split()[:2] for line in lines if line.strip())
    except ValueError as error:
        raise UserError(f"tiny-imagenet: {base / ANNOTATIONS} has lines without a wnid; unpack {URL} again") from error
