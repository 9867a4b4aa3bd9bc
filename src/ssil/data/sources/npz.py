"""Data sets of arrays in one .npz file."""

from pathlib import Path
from zipfile import is_zipfile

import numpy as np
import torch
from numpy.typing import NDArray

from ssil.core.errors import UserError
from ssil.core.samples import Samples
from ssil.data.augmentation import generic
from ssil.data.cache import BROKEN
from ssil.data.dataset import Dataset, DatasetInfo
from ssil.data.resident_images import Resident, Unchanged, vectors

INFOS = (
    DatasetInfo("FILE.npz", "your own arrays x_train, y_train, x_test, y_test", "any", "any, grey or colour", "a file"),
    DatasetInfo("FILE.npz", "the same of features, float (N, width): with --backbone identity", "any", "-", "a file"),
)
KEYS = ("x_train", "y_train", "x_test", "y_test")

Array = NDArray[np.generic]


def arrays(path: Path) -> Dataset:
    """Return the data set in an .npz file.

    Images are uint8 (N, H, W), (N, H, W, C) or (N, C, H, W) with C = 1 or 3; features are floating-point numbers
    (N, width), which are used in single precision. Labels are integers or strings, and classes are in sorted order. An
    optional array `classes` names the integer labels.
    """
    stored = _stored(path)
    train, test = (_images(path, f"x_{part}", stored[f"x_{part}"]) for part in ("train", "test"))
    if train.shape != test.shape:
        raise UserError(
            f"dataset: {path}: images of x_train are {train.shape}, of x_test {test.shape}; make them the same size"
        )
    for part, images in (("train", train), ("test", test)):
        _check_labels(path, f"y_{part}", stored[f"y_{part}"], len(images))
    values, (y_train, y_test) = _labels(path, stored["y_train"], stored["y_test"])
    names = _names(path, values, stored.get("classes"))
    are_features = stored["x_train"].dtype.kind == "f"
    transform = Unchanged(stored=torch.float32) if are_features else generic(*train.shape)
    return Dataset(path.stem, Samples(train, y_train), Samples(test, y_test), names, transform)


def _stored(path: Path) -> dict[str, Array]:
    if not path.is_file():
        raise UserError(f"dataset: {path} is not there; check the path")
    if not is_zipfile(path):
        raise UserError(f"dataset: {path} is no .npz file (a zip of arrays); make it with numpy.savez")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as content:
            stored = {key: content[key] for key in (*KEYS, "classes") if key in content}
    except (*BROKEN, TypeError, MemoryError) as error:  # TypeError: a single array; MemoryError: a false size
        raise UserError(
            f"dataset: {path} has an array that can't be read ({error}); save plain numbers or strings"
        ) from error
    missing = [key for key in KEYS if key not in stored]
    if missing:
        raise UserError(f"dataset: {path} lacks {', '.join(missing)}: an .npz data set has {', '.join(KEYS)}")
    return stored


def _images(path: Path, key: str, x: Array) -> Resident:
    if x.dtype.kind == "f" and x.ndim == 2:
        return _features(path, key, x)
    if x.dtype != np.uint8:
        wanted = "images must be uint8, 0 to 255, and features floating-point numbers (N, width)"
        raise UserError(f"dataset: {path}: {key} is {x.dtype} {x.shape}; {wanted}")
    if x.ndim == 3:
        x = x[..., None]
    if x.ndim == 4 and x.shape[3] not in (1, 3) and x.shape[1] in (1, 3):
        x = x.transpose(0, 2, 3, 1)
    if x.ndim != 4 or x.shape[3] not in (1, 3) or not x.size:
        raise UserError(
            f"dataset: {path}: {key} is {x.shape}; images must be (N, H, W), (N, H, W, C) or (N, C, H, W), C 1 or 3"
        )
    return Resident(torch.from_numpy(np.ascontiguousarray(x)))


def _features(path: Path, key: str, x: Array) -> Resident:
    """Return features as images of their bytes; raise UserError if one is not finite in single precision."""
    values = torch.from_numpy(x.astype(np.float32))
    if not values.numel():
        raise UserError(f"dataset: {path}: {key} is {x.shape}; there must be an image, and a feature of it")
    if not values.isfinite().all():
        row = int((~values.isfinite().all(1)).nonzero()[0])
        raise UserError(f"dataset: {path}: {key} has a feature that is not finite in row {row}; mend or remove the row")
    return vectors(values)


def _check_labels(path: Path, key: str, y: Array, count: int) -> None:
    if y.ndim != 1 or y.dtype.kind not in "iuU":
        raise UserError(
            f"dataset: {path}: {key} is {y.dtype} {y.shape}; labels must be integers or strings, one per image"
        )
    if len(y) != count:
        raise UserError(f"dataset: {path}: {key} has {len(y)} labels for {count} images; there must be one per image")


def _labels(path: Path, y_train: Array, y_test: Array) -> tuple[Array, list[torch.Tensor]]:
    """Return the label values in class order, and the labels counted from 0."""
    values = np.unique(y_train)
    strange = sorted(set(y_test.tolist()) - set(values.tolist()), key=str)
    if strange:
        raise UserError(f"dataset: {path}: y_test has labels that y_train has not: {', '.join(map(repr, strange[:5]))}")
    return values, [torch.from_numpy(np.searchsorted(values, y)) for y in (y_train, y_test)]


def _names(path: Path, values: Array, classes: Array | None) -> tuple[str, ...]:
    if classes is None:
        return tuple(map(str, values))
    if values.dtype.kind == "U" or classes.ndim != 1 or not set(values.tolist()) <= set(range(len(classes))):
        raise UserError(f"dataset: {path}: classes must be a list with a name for each integer label, counted from 0")
    names = tuple(str(classes[value]) for value in values.tolist())
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UserError(f"dataset: {path}: classes has {twice!r} twice; give each class a name of its own")
    return names
