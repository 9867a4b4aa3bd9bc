"""Data sets by name or path: synthetic glyphs, small sets of pixels, and encoded images from many sources."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from ssil.core.errors import UserError, did_you_mean
from ssil.data.assemble import assemble as assembled
from ssil.data.assemble import placed
from ssil.data.dataset import Dataset, DatasetInfo, subset
from ssil.data.encoded_images import workers
from ssil.data.file_validation import FileValidation, ProgressCallback, survey
from ssil.data.image_index import ImageIndex, Preprocessing, Remark, stop_at
from ssil.data.sources import (
    cifar,
    digits,
    folder,
    glyphs,
    huggingface,
    imagenet,
    landmarks,
    manifest,
    npz,
    omniglot,
    tiny_imagenet,
)
from ssil.data.sources.class_selection import first, only, pick, positive
from ssil.data.store.format import is_store
from ssil.data.store.reader import Store, open_store

Augment = Literal["crop", "shift", "none"]

INFOS: tuple[DatasetInfo, ...] = (
    imagenet.INFO,
    imagenet.INFO_100,
    tiny_imagenet.INFO,
    omniglot.INFO,
    landmarks.INFO_1K,
    landmarks.INFO_10K,
    folder.INFO,
    manifest.INFO,
    huggingface.INFO,
    DatasetInfo("STORE", "what `ssil data prepare` made of any of these", "any", "as of its source", "a folder"),
)


@dataclass(frozen=True)
class DataRequest:
    """What is wanted of a set of encoded images; None leaves it to the set."""

    root: Path | None = None
    classes: int | None = None
    class_list: Path | None = None
    min_per_class: int | None = None
    max_per_class: int | None = None
    test_per_class: int | None = None
    image_size: int | None = None
    augment: Augment | None = None
    seed: int = 0


def _landmarks(classes: int, tested: int) -> Callable[[DataRequest], ImageIndex]:
    def found(request: DataRequest) -> ImageIndex:
        count = tested if request.test_per_class is None else request.test_per_class
        return landmarks.landmarks(
            request.root, classes, count, request.seed, request.max_per_class, request.min_per_class
        )

    return found


LANDMARKS = {"landmark-v2-1k": _landmarks(1_000, 50), "landmark-v2-10k": _landmarks(10_000, 10)}
NAMED: dict[str, Callable[[DataRequest], ImageIndex]] = {
    "imagenet": lambda request: imagenet.imagenet(request.root),
    "imagenet100": lambda request: imagenet.imagenet100(request.root),
    "tiny-imagenet": lambda request: tiny_imagenet.tiny_imagenet(request.root),
    "omniglot": lambda request: omniglot.omniglot(request.root),
    **LANDMARKS,
}


def find_image_index(name: str, request: DataRequest | None = None) -> ImageIndex | None:
    """The set of this name, or in this folder, store or manifest, or on the hub; None if it is none of these.

    Of the limits, landmarks are chosen by; those of other sets wait until the good images are known (`gathered`).
    """
    request = request or DataRequest()
    listing = _found(name, request)
    if listing is None:
        return None
    if request.class_list:
        listing = only(listing, request.class_list)
    if request.classes is not None and (request.min_per_class is None or name in LANDMARKS):
        listing = first(listing, request.classes)
    if is_store(Path(name).expanduser()):
        listing = replace(listing, remarks=_of_chosen(open_store(Path(name).expanduser()), listing))
    return replace(listing, look=_look(listing.look, request))


def _of_chosen(store: Store, listing: ImageIndex) -> tuple[Remark, ...]:
    """The remarks without those on files of classes that were not chosen."""
    classes = {path: store.facts.classes[label] for path, label in store.refused_labels.items()}
    chosen = {*listing.classes, None}
    return tuple(remark for remark in listing.remarks if classes.get(remark.path) in chosen)


def gathered(
    name: str,
    request: DataRequest,
    strict: bool = False,
    threads: int | None = None,
    on_progress: ProgressCallback | None = None,
    fresh: bool = False,
) -> tuple[ImageIndex, FileValidation] | None:
    """The set of this name as `find_listing` finds it, examined; without classes that have too few good images."""
    positive(min_per_class=request.min_per_class, max_per_class=request.max_per_class)
    listing = find_image_index(name, request)
    if listing is None:
        return None
    found = survey(listing.source, on_progress, strict, threads, fresh)
    if request.min_per_class is None or name in LANDMARKS:
        return listing, found
    sizes = np.bincount(listing.labels[found.good], minlength=len(listing.classes))
    order = (sizes >= request.min_per_class).nonzero()[0][: request.classes]
    if not len(order):
        raise UserError(
            f"min_per_class: {request.min_per_class} is too many, no class of {listing.name} has over {sizes.max()}"
        )
    return pick(listing, order.tolist()), found.take(np.isin(listing.labels, order).nonzero()[0])


def _found(name: str, request: DataRequest) -> ImageIndex | None:
    path = Path(name).expanduser()
    if name in NAMED:
        return NAMED[name](request)
    if name.startswith(huggingface.PREFIX):
        return huggingface.hub(name)
    if is_store(path):
        return open_store(path).listing()
    if path.is_dir():
        return folder.folder(path)
    return manifest.manifest(path, request.root) if path.suffix.lower() in manifest.SUFFIXES else None


def _look(look: Preprocessing, request: DataRequest) -> Preprocessing:
    """How the pictures are seen, after all wishes."""
    size = look.size if request.image_size is None else request.image_size
    if size < 1:
        raise UserError(f"image_size: {size} must be at least 1")
    return replace(look, size=size, augment=request.augment or look.augment)


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
    on_progress: ProgressCallback | None = None,
) -> Dataset:
    """A data set by name (see `describe`), or the one in a folder, a store, a manifest or an .npz file.

    `classes` keeps the first ones. `train_per_class` and `test_per_class` are how many glyphs to make; of other sets
    they keep the images with the smallest SHA-256 of their pixels. `seed` decides glyphs and random test splits.
    Of image files only: `class_list`, `min_per_class`, `max_per_class`, `augment`; each is examined once, and a bad
    one is left out with a remark, or refused if `strict`.
    """
    request = DataRequest(
        root, classes, class_list, min_per_class, max_per_class, test_per_class, image_size, augment, seed
    )
    threads = threads or workers()
    if name not in PIXELS and (found := gathered(name, request, strict, threads, on_progress)):
        dataset = assembled(*found, seed, threads, None if name in LANDMARKS else max_per_class)
        if strict:
            stop_at(dataset.remarks)
        tests = None if name in LANDMARKS else test_per_class  # which have drawn theirs
        return placed(subset(dataset, None, train_per_class, tests), found[1].lengths, in_memory)
    _refuse_wishes_of_files(name, request)
    if name == "glyphs":
        numbers = {"classes": classes, "train_per_class": train_per_class, "test_per_class": test_per_class}
        wanted = {**numbers, "size": image_size}
        return glyphs.glyphs(seed=seed, **{option: value for option, value in wanted.items() if value is not None})
    return subset(_whole(name, request), classes, train_per_class, test_per_class)


def describe() -> tuple[DatasetInfo, ...]:
    """What `load` can load."""
    return (glyphs.INFO, digits.INFO, cifar.INFO_10, cifar.INFO, *INFOS, npz.INFO)


def _refuse_wishes_of_files(name: str, request: DataRequest) -> None:
    for option in ("class_list", "min_per_class", "max_per_class", "augment"):
        if (value := getattr(request, option)) is not None:
            raise UserError(f"{option}: {value} is not for {name}, but for sets of image files; leave it out")


def _whole(name: str, request: DataRequest) -> Dataset:
    """A set of pixels."""
    path = Path(name).expanduser()
    if name not in NAMES and path.suffix != ".npz":
        raise UserError(f"dataset: {name!r} is neither a known set nor a folder or file of images; {_cure(name)}")
    if request.image_size is not None:
        raise UserError(f"image_size: {request.image_size} is not for {name}, which has its own size; leave it out")
    if name == "digits":
        return digits.digits(request.seed)
    if name in PIXELS:
        return cifar.cifar10(request.root) if name == "cifar10" else cifar.cifar100(request.root)
    return npz.arrays(path)


def _cure(name: str) -> str:
    return did_you_mean(name, NAMES, f"give {', '.join(NAMES)}, or the path of your images")
