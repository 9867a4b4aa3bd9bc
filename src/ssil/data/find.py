"""Sets of encoded images, by name or path; nothing is decoded here."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from ssil.data.dataset import Info
from ssil.data.listing import Listing, Look, Remark
from ssil.data.sources import folder, hub, imagenet, landmarks, manifest, omniglot, tiny
from ssil.data.sources.subset import first, only, pick, positive
from ssil.data.store import Store, is_store, open_store
from ssil.data.survey import Survey, Told, survey
from ssil.errors import UserError

Augment = Literal["crop", "shift", "none"]

INFOS: tuple[Info, ...] = (
    imagenet.INFO,
    imagenet.INFO_100,
    tiny.INFO,
    omniglot.INFO,
    landmarks.INFO_1K,
    landmarks.INFO_10K,
    folder.INFO,
    manifest.INFO,
    hub.INFO,
    Info("STORE", "what `ssil data prepare` made of any of these", "any", "as of its source", "a folder"),
)


@dataclass(frozen=True)
class Asked:
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


def _landmarks(classes: int, tested: int) -> Callable[[Asked], Listing]:
    def found(asked: Asked) -> Listing:
        count = tested if asked.test_per_class is None else asked.test_per_class
        return landmarks.landmarks(asked.root, classes, count, asked.seed, asked.max_per_class, asked.min_per_class)

    return found


LANDMARKS = {"landmark-v2-1k": _landmarks(1_000, 50), "landmark-v2-10k": _landmarks(10_000, 10)}
NAMED: dict[str, Callable[[Asked], Listing]] = {
    "imagenet": lambda asked: imagenet.imagenet(asked.root),
    "imagenet100": lambda asked: imagenet.imagenet100(asked.root),
    "tiny-imagenet": lambda asked: tiny.tiny_imagenet(asked.root),
    "omniglot": lambda asked: omniglot.omniglot(asked.root),
    **LANDMARKS,
}


def find_listing(name: str, asked: Asked | None = None) -> Listing | None:
    """The set of this name, or in this folder, store or manifest, or on the hub; None if it is none of these.

    Of the limits, landmarks are chosen by; those of other sets wait until the good images are known (`gathered`).
    """
    asked = asked or Asked()
    listing = _found(name, asked)
    if listing is None:
        return None
    if asked.class_list:
        listing = only(listing, asked.class_list)
    if asked.classes is not None and (asked.min_per_class is None or name in LANDMARKS):
        listing = first(listing, asked.classes)
    if is_store(Path(name).expanduser()):
        listing = replace(listing, remarks=_of_chosen(open_store(Path(name).expanduser()), listing))
    return replace(listing, look=_look(listing.look, asked))


def _of_chosen(store: Store, listing: Listing) -> tuple[Remark, ...]:
    """The remarks without those on files of classes that were not chosen."""
    classes = {path: store.facts.classes[label] for path, label in store.refused_labels.items()}
    chosen = {*listing.classes, None}
    return tuple(remark for remark in listing.remarks if classes.get(remark.path) in chosen)


def gathered(
    name: str,
    asked: Asked,
    strict: bool = False,
    threads: int | None = None,
    told: Told | None = None,
    fresh: bool = False,
) -> tuple[Listing, Survey] | None:
    """The set of this name as `find_listing` finds it, examined; without classes that have too few good images."""
    positive(min_per_class=asked.min_per_class, max_per_class=asked.max_per_class)
    listing = find_listing(name, asked)
    if listing is None:
        return None
    found = survey(listing.source, told, strict, threads, fresh)
    if asked.min_per_class is None or name in LANDMARKS:
        return listing, found
    sizes = np.bincount(listing.labels[found.good], minlength=len(listing.classes))
    order = (sizes >= asked.min_per_class).nonzero()[0][: asked.classes]
    if not len(order):
        raise UserError(
            f"min_per_class: {asked.min_per_class} is too many, no class of {listing.name} has over {sizes.max()}"
        )
    return pick(listing, order.tolist()), found.take(np.isin(listing.labels, order).nonzero()[0])


def _found(name: str, asked: Asked) -> Listing | None:
    path = Path(name).expanduser()
    if name in NAMED:
        return NAMED[name](asked)
    if name.startswith(hub.PREFIX):
        return hub.hub(name)
    if is_store(path):
        return open_store(path).listing()
    if path.is_dir():
        return folder.folder(path)
    return manifest.manifest(path, asked.root) if path.suffix.lower() in manifest.SUFFIXES else None


def _look(look: Look, asked: Asked) -> Look:
    """How the pictures are seen, after all wishes."""
    size = look.size if asked.image_size is None else asked.image_size
    if size < 1:
        raise UserError(f"image_size: {size} must be at least 1")
    return replace(look, size=size, augment=asked.augment or look.augment)
