"""Load a data set by name or path: synthetic glyphs, arrays of pixels, and encoded images from many sources."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from ssil.core.errors import UserError, did_you_mean
from ssil.core.plugins import load_object, names_code
from ssil.data.assemble import assemble, to_memory
from ssil.data.augmentation import OwnAugmentation, Transform
from ssil.data.data_settings import DataSettings
from ssil.data.dataset import Dataset, DatasetInfo, imbalanced, subset
from ssil.data.file_validation import FileValidation, ProgressCallback, validate_files
from ssil.data.image_index import ImageIndex, Preprocessing, Remark, refuse_remarks
from ssil.data.prefetch import default_threads
from ssil.data.resident_images import Unchanged
from ssil.data.sources import (
    characters,
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
)
from ssil.data.store import reader
from ssil.data.store.format import is_store

SOURCES = (glyphs, characters, digits, cifar, imagenet, omniglot, landmarks, folder, manifest, huggingface, reader, npz)


def describe() -> tuple[DatasetInfo, ...]:
    """Return the lines of `ssil datasets`: what `load` can load."""
    return tuple(info for source in SOURCES for info in source.INFOS)


def _landmarks(classes: int, default_test_per_class: int) -> Callable[[DataSettings], ImageIndex]:
    def index(settings: DataSettings) -> ImageIndex:
        return landmarks.landmarks(
            settings.data_root,
            classes,
            settings.test_per_class or default_test_per_class,
            settings.split_seed or 0,
            settings.max_per_class,
            settings.min_per_class,
        )

    return index


LANDMARKS = {"landmark-v2-1k": _landmarks(1_000, 50), "landmark-v2-10k": _landmarks(10_000, 10)}
"""Sets whose source applies `min_per_class`, `max_per_class` and `test_per_class` itself."""
NAMED: dict[str, Callable[[DataSettings], ImageIndex]] = {
    "imagenet": lambda settings: imagenet.imagenet(settings.data_root),
    "imagenet100": lambda settings: imagenet.imagenet100(settings.data_root),
    "tiny-imagenet": lambda settings: imagenet.tiny_imagenet(settings.data_root),
    "omniglot": lambda settings: omniglot.omniglot(settings.data_root),
    **LANDMARKS,
}
DRAWN = {"glyphs": glyphs.glyphs, "characters": characters.characters}
"""Sets that are drawn as the settings say."""
PIXELS = (*DRAWN, "digits", "cifar10", "cifar100")
NAMES = (*PIXELS, *NAMED)


def load(settings: DataSettings, threads: int | None = None, on_progress: ProgressCallback | None = None) -> Dataset:
    """Return the data set that the settings describe.

    Image files are validated first: a bad one is left out with a remark, or refused if `settings.strict`. The setting
    `validation` is left to the caller, whose seed draws the validation split (`dataset.validation_split`).

    Args:
        settings: The data set, by name (see `describe`) or path, and the part of it to use.
        threads: The number of threads that decode image files; by default one more than there are cores.
        on_progress: Is called now and then with the number of validated files and the number of all files.
    """
    dataset = _from_image_files(settings, threads or default_threads(), on_progress)
    dataset = dataset or _for_weights(_from_pixels(settings), settings)
    if isinstance(dataset.transform, Unchanged) and (settings.brightness or settings.augment):
        raise UserError(f"augment: {settings.dataset} has features, not images; leave out --augment and --brightness")
    if settings.augment and names_code(settings.augment):
        dataset = replace(dataset, transform=own_augmentation(dataset.transform, settings.augment))
    if settings.brightness:
        dataset = replace(dataset, transform=replace(dataset.transform, brightness=settings.brightness))
    return imbalanced(dataset, settings.least, settings.split_seed or 0) if settings.least else dataset


def own_augmentation(transform: Transform, name: str) -> Transform:
    """Return a transform whose training views are made by a function of the user's, without shifts and flips."""
    function = load_object(name)
    if not callable(function):
        raise UserError(f"augment: {name} is of type {type(function).__name__}; name a function")
    return replace(transform, pad=0, flip=False, own=OwnAugmentation(name, function))


def _for_weights(dataset: Dataset, settings: DataSettings) -> Dataset:
    """Return a data set of pixels that a transform brings to the size and normalisation that first weights need."""
    if not (needed := settings.input):
        return dataset
    if (channels := dataset.train.images.shape[2]) != needed.channels:
        raise UserError(
            f"init: the weights are for images of {needed.channels} channel(s), and those of {dataset.name} have "
            f"{channels}; give other weights"
        )
    size = None if settings.image_size else needed.size
    transform = replace(
        dataset.transform, mean=needed.mean, std=needed.std, size=size, interpolation=needed.interpolation
    )
    return replace(dataset, transform=transform)


def _from_image_files(settings: DataSettings, threads: int, on_progress: ProgressCallback | None) -> Dataset | None:
    """Return the data set of image files, or None if the settings name something else."""
    if settings.dataset in PIXELS or not (found := find_validated_index(settings, threads, on_progress)):
        return None
    limited = settings.dataset in LANDMARKS
    dataset = assemble(*found, settings.split_seed or 0, threads, None if limited else settings.max_per_class)
    if settings.strict:
        refuse_remarks(dataset.remarks)
    dataset = subset(dataset, None, settings.train_per_class, None if limited else settings.test_per_class)
    return to_memory(dataset, found[1].lengths, settings.in_memory)


def find_validated_index(
    settings: DataSettings,
    threads: int | None = None,
    on_progress: ProgressCallback | None = None,
    fresh: bool = False,
) -> tuple[ImageIndex, FileValidation] | None:
    """Return what `find_image_index` finds and the validation of its files, without classes of too few good images.

    Args:
        settings: The data set and the part of it to use.
        threads: The number of threads that decode.
        on_progress: Is called now and then with the number of validated files and the number of all files.
        fresh: Whether to validate files again that were validated before and have not changed.
    """
    index = find_image_index(settings)
    if index is None:
        return None
    validation = validate_files(index.source, on_progress, settings.strict, threads, fresh)
    if settings.min_per_class is None or settings.dataset in LANDMARKS:
        return index, validation
    sizes = index.counts(validation.good)
    large = (sizes >= settings.min_per_class).nonzero()[0][: settings.classes]
    if not len(large):
        raise UserError(
            f"min_per_class: {settings.min_per_class} is too many, no class of {index.name} has over {sizes.max()}"
        )
    return index.pick(large.tolist()), validation.take(np.isin(index.labels, large).nonzero()[0])


def find_image_index(settings: DataSettings) -> ImageIndex | None:
    """Return the index of a set of image files: a named one, a folder, a store, a manifest, or one on the hub.

    Return None if the settings name none of these. Limits of images per class are not applied yet, because they count
    validated files only; those of landmarks are.
    """
    index = _whole_index(settings)
    if index is None:
        return None
    if settings.class_list:
        index = index.listed_classes(settings.class_list)
    if settings.classes is not None and (settings.min_per_class is None or settings.dataset in LANDMARKS):
        index = index.first_classes(settings.classes)
    path = Path(settings.dataset).expanduser()
    if is_store(path):
        index = replace(index, remarks=_remarks_on_chosen(reader.open_store(path), index))
    return replace(index, preprocessing=_preprocessing(index.preprocessing, settings))


def _whole_index(settings: DataSettings) -> ImageIndex | None:
    name, path = settings.dataset, Path(settings.dataset).expanduser()
    if name in NAMED:
        return NAMED[name](settings)
    if name.startswith(huggingface.PREFIX):
        return huggingface.hub(name)
    if is_store(path):
        return reader.open_store(path).image_index()
    if path.is_dir():
        return folder.folder(path)
    return manifest.manifest(path, settings.data_root) if path.suffix.lower() in manifest.SUFFIXES else None


def _remarks_on_chosen(store: reader.Store, index: ImageIndex) -> tuple[Remark, ...]:
    """Return the index's remarks without those on files of classes that were not chosen."""
    classes = {path: store.facts.classes[label] for path, label in store.refused_labels.items()}
    chosen = {*index.classes, None}
    return tuple(remark for remark in index.remarks if classes.get(remark.path) in chosen)


def _preprocessing(default: Preprocessing, settings: DataSettings) -> Preprocessing:
    needed = settings.input
    size = settings.image_size or (needed.size if needed else default.size)
    return replace(default, size=size, augment=settings.built_in_augment or default.augment).for_weights(needed)


def _from_pixels(settings: DataSettings) -> Dataset:
    name = settings.dataset
    for option in ("class_list", "min_per_class", "max_per_class", "augment"):
        own = option == "augment" and names_code(settings.augment or "")
        if (value := getattr(settings, option)) is not None and not own:
            raise UserError(f"{option}: {value} is not for {name}, but for sets of image files; leave it out")
    if name in DRAWN:
        options = settings.model_dump(include={"classes", "train_per_class", "test_per_class"}, exclude_none=True)
        size = {"size": settings.image_size} if settings.image_size else {}
        return DRAWN[name](seed=settings.split_seed or 0, **options, **size)
    return subset(_arrays(settings), settings.classes, settings.train_per_class, settings.test_per_class)


def _arrays(settings: DataSettings) -> Dataset:
    """Return a whole data set of pixels that has a size of its own."""
    name, path = settings.dataset, Path(settings.dataset).expanduser()
    if name not in NAMES and path.suffix != ".npz":
        raise UserError(f"dataset: {name!r} is neither a known set nor a folder or file of images; {_cure(name)}")
    if settings.image_size is not None:
        raise UserError(f"image_size: {settings.image_size} is not for {name}, which has its own size; leave it out")
    if name == "digits":
        return digits.digits(settings.split_seed or 0)
    if name in PIXELS:
        return cifar.cifar10(settings.data_root) if name == "cifar10" else cifar.cifar100(settings.data_root)
    return npz.arrays(path)


def _cure(name: str) -> str:
    return did_you_mean(name, NAMES, f"give {', '.join(NAMES)}, or the path of your images")
