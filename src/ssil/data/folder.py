"""Image folders: a sub-folder a class."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch

from ssil.data.augment import generic
from ssil.data.dataset import Dataset, Info, select, split
from ssil.data.decode import UnreadableError, decode
from ssil.data.resident import Resident
from ssil.errors import UserError
from ssil.types import Samples

SIZE = 64
INFO = Info(
    "FOLDER", "your own image files, a sub-folder a class", "any", f"{SIZE}x{SIZE} colour, or as you say", "a folder"
)


Skipped = tuple[tuple[str, str], ...]


def folder(path: Path, size: int = SIZE, seed: int = 0) -> Dataset:
    """The images in a folder, made `size` pixels square; files that can't be read are listed in `skipped`.

    With sub-folders `train` and `test` (or `val`), each of them has a sub-folder a class; otherwise a seeded 20 % of
    each class is for testing. Classes come in natural order.
    """
    if size < 1:
        raise UserError(f"image_size: {size} must be at least 1")
    tests = [path / name for name in ("test", "val") if (path / name).is_dir()]
    if tests and (path / "train").is_dir():
        return _from_two(path, path / "train", tests[0], size)
    names = _classes(path)
    every, skipped = _read(path, names, size)
    train, test = (select(every, part) for part in split(every.labels, 0.2, seed, "test split"))
    return Dataset(path.resolve().name, train, test, names, generic(size, size, 3), skipped=skipped)


def _from_two(path: Path, train_path: Path, test_path: Path, size: int) -> Dataset:
    names, tested = _classes(train_path), _classes(test_path)
    strange = [name for name in tested if name not in names]
    if strange:
        raise UserError(f"dataset: {test_path} has classes that {train_path} has not: {', '.join(strange[:5])}")
    (train, skipped), (test, more) = _read(train_path, names, size), _read(test_path, tested, size)
    test = Samples(test.images, torch.tensor([names.index(name) for name in tested])[test.labels])
    return Dataset(path.resolve().name, train, test, names, generic(size, size, 3), skipped=skipped + more)


def _classes(path: Path) -> tuple[str, ...]:
    names = [entry.name for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith(".")]
    if not names:
        raise UserError(f"dataset: {path} has no sub-folders: put the images of each class in a sub-folder of its own")
    return tuple(sorted(names, key=natural))


def _files(path: Path) -> list[Path]:
    files = [entry for entry in path.iterdir() if entry.is_file() and not entry.name.startswith(".")]
    return sorted(files, key=lambda file: natural(file.name))


def natural(name: str) -> tuple[list[str | int], str]:
    """A key that sorts the numbers inside names by value.

    >>> sorted(["img10", "img2", "Img1"], key=natural)
    ['Img1', 'img2', 'img10']
    """
    parts = re.split(r"(\d+)", name.casefold())
    return [int(part) if index % 2 else part for index, part in enumerate(parts)], name


def _read(path: Path, names: tuple[str, ...], size: int) -> tuple[Samples, Skipped]:
    """All images of these classes under this path, and the files that can't be read with the reason."""
    files = [file for name in names for file in _files(path / name)]
    labels = [label for label, name in enumerate(names) for _ in _files(path / name)]
    pixels = np.empty((len(files), size, size, 3), dtype=np.uint8)

    def fill(index: int) -> str | None:
        try:
            pixels[index] = decode(files[index], size)
        except UnreadableError as error:
            return str(error)
        return None

    with ThreadPoolExecutor() as pool:
        reasons = list(pool.map(fill, range(len(files))))
    skipped = tuple((str(file), reason) for file, reason in zip(files, reasons, strict=True) if reason is not None)
    good = torch.tensor([reason is None for reason in reasons]).nonzero().squeeze(1)
    samples = select(Samples(Resident(torch.from_numpy(pixels)), torch.tensor(labels)), good)
    _check_complete(path, names, samples)
    return samples, skipped


def _check_complete(path: Path, names: tuple[str, ...], samples: Samples) -> None:
    counts = torch.bincount(samples.labels, minlength=len(names)).tolist()
    empty = [name for name, count in zip(names, counts, strict=True) if not count]
    if empty:
        raise UserError(
            f"dataset: {path} has no readable image in {', '.join(empty[:5])}: add images or remove the sub-folder"
        )
