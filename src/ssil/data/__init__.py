"""Data sets by name or path: synthetic glyphs, small sets of pixels, and encoded images from many sources."""

from difflib import get_close_matches
from pathlib import Path

from ssil.data import arrays, cifar, digits, glyphs
from ssil.data.ahead import ahead
from ssil.data.assemble import assemble as assembled
from ssil.data.assemble import placed
from ssil.data.augment import Draws, Transform
from ssil.data.dataset import Dataset, Info
from ssil.data.encoded import workers
from ssil.data.find import INFOS, LANDMARKS, NAMED, Asked, Augment, find_listing, gathered
from ssil.data.listing import Remark, stop_at
from ssil.data.resident import Resident
from ssil.data.subset import subset, uneven, validation_split
from ssil.data.survey import Told
from ssil.errors import UserError

__all__ = [
    "Asked",
    "Dataset",
    "Draws",
    "Info",
    "Remark",
    "Resident",
    "Told",
    "Transform",
    "ahead",
    "describe",
    "find_listing",
    "gathered",
    "load",
    "uneven",
    "validation_split",
]

PIXELS = ("glyphs", "digits", "cifar10", "cifar100")
NAMES = (*PIXELS, *NAMED)


def load(
    name: str,
    *,
    root: Path | None = None,
    classes: int | None = None,
    class_list: Path | None = None,
    min_per_class: int | None = None,
    max_per_class: int | None = None,
    train_per_class: int | None = None,
    test_per_class: int | None = None,
    image_size: int | None = None,
    augment: Augment | None = None,
    seed: int = 0,
    strict: bool = False,
    in_memory: bool | None = None,
    threads: int | None = None,
    told: Told | None = None,
) -> Dataset:
    """A data set by name (see `describe`), or the one in a folder, a store, a manifest or an .npz file.

    `classes` keeps the first ones. `train_per_class` and `test_per_class` are how many glyphs to make; of other sets
    they keep the images with the smallest SHA-256 of their pixels. `seed` decides glyphs and random test splits.
    Of image files only: `class_list`, `min_per_class`, `max_per_class`, `augment`; each is examined once, and a bad
    one is left out with a remark, or refused if `strict`.
    """
    asked = Asked(root, classes, class_list, min_per_class, max_per_class, test_per_class, image_size, augment, seed)
    threads = threads or workers()
    if name not in PIXELS and (found := gathered(name, asked, strict, threads, told)):
        dataset = assembled(*found, seed, threads, None if name in LANDMARKS else max_per_class)
        if strict:
            stop_at(dataset.remarks)
        tests = None if name in LANDMARKS else test_per_class  # which have drawn theirs
        return placed(subset(dataset, None, train_per_class, tests), found[1].lengths, in_memory)
    _refuse_wishes_of_files(name, asked)
    if name == "glyphs":
        numbers = {"classes": classes, "train_per_class": train_per_class, "test_per_class": test_per_class}
        wanted = {**numbers, "size": image_size}
        return glyphs.glyphs(seed=seed, **{option: value for option, value in wanted.items() if value is not None})
    return subset(_whole(name, asked), classes, train_per_class, test_per_class)


def describe() -> tuple[Info, ...]:
    """What `load` can load."""
    return (glyphs.INFO, digits.INFO, cifar.INFO_10, cifar.INFO, *INFOS, arrays.INFO)


def _refuse_wishes_of_files(name: str, asked: Asked) -> None:
    for option in ("class_list", "min_per_class", "max_per_class", "augment"):
        if (value := getattr(asked, option)) is not None:
            raise UserError(f"{option}: {value} is not for {name}, but for sets of image files; leave it out")


def _whole(name: str, asked: Asked) -> Dataset:
    """A set of pixels."""
    path = Path(name).expanduser()
    if name not in NAMES and path.suffix != ".npz":
        raise UserError(f"dataset: {name!r} is neither a known set nor a folder or file of images; {_cure(name)}")
    if asked.image_size is not None:
        raise UserError(f"image_size: {asked.image_size} is not for {name}, which has its own size; leave it out")
    if name == "digits":
        return digits.digits(asked.seed)
    if name in PIXELS:
        return cifar.cifar10(asked.root) if name == "cifar10" else cifar.cifar100(asked.root)
    return arrays.arrays(path)


def _cure(name: str) -> str:
    close = get_close_matches(name, NAMES, n=1)
    return f"did you mean {close[0]}?" if close else f"give {', '.join(NAMES)}, or the path of your images"
