"""Data sets by name or path: synthetic glyphs, digits, CIFAR-100, your own arrays and image folders."""

from difflib import get_close_matches
from pathlib import Path

from ssil.data import arrays, cifar, digits, folder, glyphs
from ssil.data.augment import Draws, Transform
from ssil.data.dataset import Dataset, Info
from ssil.data.resident import Resident
from ssil.data.subset import subset, validation_split
from ssil.errors import UserError

__all__ = ["Dataset", "Draws", "Info", "Resident", "Transform", "describe", "load", "validation_split"]

NAMES = ("glyphs", "digits", "cifar100")


def load(
    name: str,
    *,
    root: Path | None = None,
    classes: int | None = None,
    train_per_class: int | None = None,
    test_per_class: int | None = None,
    image_size: int | None = None,
    seed: int = 0,
) -> Dataset:
    """A data set by name (see `describe`), or the one in an .npz file or a folder.

    `classes` keeps the first ones. `train_per_class` and `test_per_class` are how many glyphs to make; of other sets
    they keep the images with the smallest SHA-256 of their pixels. `seed` decides glyphs and random test splits.
    """
    if name == "glyphs":
        asked = {
            "classes": classes,
            "train_per_class": train_per_class,
            "test_per_class": test_per_class,
            "size": image_size,
        }
        return glyphs.glyphs(seed=seed, **{option: value for option, value in asked.items() if value is not None})
    return subset(_whole(name, root, image_size, seed), classes, train_per_class, test_per_class)


def describe() -> tuple[Info, ...]:
    """What `load` can load."""
    return tuple(source.INFO for source in (glyphs, digits, cifar, arrays, folder))


def _whole(name: str, root: Path | None, image_size: int | None, seed: int) -> Dataset:
    """A set of which all images are read, whatever is wanted of them."""
    path = Path(name).expanduser()
    if name not in NAMES and path.is_dir():
        return folder.folder(path, folder.SIZE if image_size is None else image_size, seed)
    if name not in NAMES and path.suffix != ".npz":
        raise UserError(f"dataset: {name!r} is neither a built-in set nor a folder or .npz file; {_cure(name)}")
    if image_size is not None:
        raise UserError(f"image_size: {image_size} is not for {name}, which has its own size; leave it out")
    if name == "digits":
        return digits.digits(seed)
    return cifar.cifar100(root) if name == "cifar100" else arrays.arrays(path)


def _cure(name: str) -> str:
    close = get_close_matches(name, NAMES, n=1)
    return f"did you mean {close[0]}?" if close else f"give {', '.join(NAMES)}, or the path of your images"
