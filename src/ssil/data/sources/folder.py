"""Image folders, one sub-folder per class, and what other sources of files in folders share with them."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from posixpath import join
from typing import NamedTuple

import numpy as np

from ssil.core.errors import UserError
from ssil.core.spelling import plain_spelling
from ssil.data.cache import data_root
from ssil.data.dataset import DatasetInfo
from ssil.data.image_index import (
    DEFAULT_PREPROCESSING,
    Files,
    ImageIndex,
    Preprocessing,
    Remark,
    as_utf8,
    error_reason,
)

SIZE = f"{DEFAULT_PREPROCESSING.size}x{DEFAULT_PREPROCESSING.size} colour, or as you say"
INFOS = (DatasetInfo("FOLDER", "your own image files, one sub-folder per class", "any", SIZE, "a folder"),)
TRAIN = ("train", "training")
TESTS = ("test", "testing", "val", "valid", "validation")

ClassFiles = Mapping[str, Sequence[str]]
"""The files of each class: paths relative to a root."""


def folder(path: Path) -> ImageIndex:
    """Return the index of all files in a folder: one sub-folder per class, in natural order.

    With a sub-folder `train`, and perhaps `test` (or `val`), in any case, each of these has one sub-folder per class.
    """
    name, (folders, files, _) = path.resolve().name, list_folder(path, "")
    train, test = (_first_present(folders, names) for names in (TRAIN, TESTS))
    if train is None or (test is None and list_folder(path, train).files):  # or a class of that name
        classes, remarks = _classes(path, "")
        return index_files(name, path, DEFAULT_PREPROCESSING, classes, remarks=remarks)
    classes, remarks = _classes(path, train)
    tests, more = _classes(path, test) if test else (None, [])
    others = [name for name in (*folders, *files) if name not in (train, test)]
    more += unused("", others, f"only {' and '.join(f'{name}/' for name in (train, test) if name)} are")
    return index_files(name, path, DEFAULT_PREPROCESSING, classes, tests, remarks=remarks + more)


def _first_present(folders: Sequence[str], names: Sequence[str]) -> str | None:
    return next((folder for name in names for folder in folders if folder.casefold() == name), None)


def _classes(path: Path, part: str) -> tuple[dict[str, list[str]], list[Remark]]:
    classes, remarks = files_by_class(path, part)
    if not classes:
        raise UserError(
            f"dataset: {path / part} has no sub-folders to read; put the images of each class in one of its own"
        )
    if not any(classes.values()) and (deeper := [one for one in classes if list_folder(path / part, one).folders]):
        places = " or ".join(str(path / part / one) for one in deeper[:MAX_PLACES])
        several = ", one at a time" if len(deeper) > 1 else ""
        raise UserError(f"dataset: {path / part} has folders in folders, but no files; perhaps {places}{several}?")
    return classes, remarks


MAX_PLACES = 3
"""How many folders a message proposes."""
MAX_DIGITS = 4_000
"""Digits of a number in a name that count in its order; Python converts at most 4,300."""


def natural_key(name: str) -> tuple[list[str | int], str]:
    """Return a key that sorts the numbers inside names by value.

    >>> sorted(["img10", "img2", "Img1"], key=natural_key)
    ['Img1', 'img2', 'img10']
    """
    parts = re.split(r"(\d+)", name.casefold())
    return [int(part[-MAX_DIGITS:]) if index % 2 else part for index, part in enumerate(parts)], name


class FolderContent(NamedTuple):
    """The names of a folder's sub-folders and files, or a remark that the folder can't be read."""

    folders: list[str]
    files: list[str]
    remarks: list[Remark]


def list_folder(root: Path, folder: str) -> FolderContent:
    """Return the content of `root / folder` in natural order, without hidden entries.

    An entry that is no folder, such as a broken link, counts as a file: its reading will fail.
    """
    content = FolderContent([], [], [])
    try:
        with os.scandir(root / folder) as entries:
            for entry in entries:
                if not entry.name.startswith("."):
                    (content.folders if _is_folder(entry) else content.files).append(entry.name)
    except OSError as error:
        return FolderContent([], [], [Remark(folder, error_reason(error))])
    for names in content[:2]:
        names.sort(key=natural_key)
    return content


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def files_of_class(root: Path, folder: str) -> tuple[list[str], list[Remark]]:
    """Return the files in a class's folder, and remarks on its sub-folders."""
    folders, files, remarks = list_folder(root, folder)
    cure = f"move its files to {folder}, or, if it is a class of its own, beside it"
    remarks += [Remark(join(folder, deep), f"a folder inside a class is not looked into; {cure}") for deep in folders]
    return [join(folder, file) for file in files], remarks


def files_by_class(
    root: Path, folder: str, is_class: Callable[[str], object] = bool
) -> tuple[dict[str, list[str]], list[Remark]]:
    """Return the files of each sub-folder whose name `is_class` accepts, and remarks on everything else."""
    folders, files, remarks = list_folder(root, folder)
    remarks += unused(folder, [*files, *(name for name in folders if not is_class(name))])
    classes = {}
    for name in filter(is_class, folders):
        classes[name], more = files_of_class(root, join(folder, name))
        remarks += more
    return classes, remarks


def unused(folder: str, names: Iterable[str], reason: str = "it belongs to no class") -> list[Remark]:
    """Return remarks on entries of a folder that are not used."""
    return [Remark(join(folder, name), f"not used: {reason}", left_out=False) for name in names]


def find_base(
    root: Path | None,
    places: Iterable[str],
    parts: Sequence[str],
    cure: str,
    enough: Callable[[Iterable[bool]], bool] = all,
) -> Path:
    """Return the first of `places` in the data root that has all (or any) of `parts`; raise UserError if none has.

    Args:
        root: The data root; by default $SSIL_DATA or the cache.
        places: Folders below the data root.
        parts: Files and folders to look for in a place.
        cure: The start of the error's message: what to put there.
        enough: `all` or `any`.
    """
    root = data_root(root)
    for place in places:
        if enough((root / place / part).exists() for part in parts):
            return root / place
    raise UserError(f"{cure} in {root}, or name another data root by --data-root or $SSIL_DATA")


def index_files(
    name: str,
    root: Path,
    preprocessing: Preprocessing,
    train: ClassFiles,
    test: ClassFiles | None = None,
    titles: Mapping[str, str] | None = None,
    remarks: Sequence[Remark] = (),
) -> ImageIndex:
    """Return the index of the files of all classes, in the order of `train`.

    Args:
        name: The data set's name.
        root: The folder to which paths are relative.
        preprocessing: How the images become network input.
        train: The training files of each class.
        test: The test files of each class; None if the set has no test part.
        titles: Class names to show in place of the keys of `train`; the keys are then the index's `keys`.
        remarks: Remarks on files that are not in the index.
    """
    keys = tuple(dict.fromkeys([*train, *(test or {})]))
    groups = [part.get(key, ()) for part in (train, test or {}) for key in keys]
    labels = np.repeat(np.tile(np.arange(len(keys)), 2), [len(group) for group in groups])
    is_test = None if test is None else np.arange(len(labels)) >= sum(map(len, groups[: len(keys)]))
    index = ImageIndex(
        as_utf8(name),
        Files(root, tuple(file for group in groups for file in group)),
        labels,
        tuple(map(as_utf8, keys if titles is None else distinct_titles(keys, titles))),
        preprocessing,
        is_test,
        tuple(remark._replace(path=as_utf8(remark.path)) for remark in remarks),
        () if titles is None else tuple(map(as_utf8, keys)),
    )
    return with_trainable_classes(index)


def distinct_titles(keys: Sequence[str], titles: Mapping[str, str]) -> tuple[str, ...]:
    """Return the title of each key; with the key where titles differ by case only, the key alone where there is none.

    >>> distinct_titles(["n1", "n2", "n3", "n4"], {"n1": "crane", "n2": "tench", "n3": "crane"})
    ('crane (n1)', 'tench', 'crane (n3)', 'n4')
    """
    named = [(key, titles.get(key, key)) for key in keys]
    count = Counter(title.casefold() for _, title in named)
    return tuple(f"{title} ({key})" if count[title.casefold()] > 1 else title for key, title in named)


def with_trainable_classes(index: ImageIndex) -> ImageIndex:
    """Return the index without classes that have no training files, and with remarks on such and other odd classes.

    Raises:
        UserError: No class has training files, or two classes have the same name.
    """
    is_test = index.test_flags()
    train_counts, test_counts = index.counts(~is_test), index.counts(is_test)
    if not train_counts.any():
        raise UserError(f"dataset: {index.name} has no files to learn from; add some to each class")
    kept = index.pick(train_counts.nonzero()[0].tolist())
    ((name, uses),) = Counter(kept.classes).most_common(1)
    if uses > 1:
        raise UserError(f"dataset: {index.name} has two classes called {name!r}; rename one of them")
    remarks = [_untrainable(index.classes[at], int(test_counts[at])) for at in (train_counts == 0).nonzero()[0]]
    if index.is_test is not None:
        remarks += [
            Remark(kept.classes[label], f"class {kept.classes[label]!r} has no files to test on", left_out=False)
            for label in (test_counts[train_counts > 0] == 0).nonzero()[0]
        ]
    return replace(kept, remarks=(*index.remarks, *remarks, *remarks_on_spelling(kept.classes)))


def _untrainable(name: str, tests: int) -> Remark:
    lost = f"; its test files ({tests:,}) are left out" if tests else ""
    return Remark(name, f"class {name!r} has no files to learn from{lost}", left_out=bool(tests))


def remarks_on_spelling(names: Iterable[str], known: Iterable[str] = ()) -> list[Remark]:
    """Return remarks on classes of `names` that are spelt like another, or like a `known` one, but for case or spaces.

    >>> [remark.reason.partition(";")[0] for remark in remarks_on_spelling(["leek ", "kiwi"], ["leek", "kiwi"])]
    ["classes 'leek' and 'leek ' differ by case, spaces or hyphens only"]
    """
    first = {plain_spelling(name): name for name in known}
    pairs = [(first.setdefault(plain_spelling(name), name), name) for name in names]
    cure = "they are learnt as two; if they are one, put their files into one folder"
    return [
        Remark(name, f"classes {other!r} and {name!r} differ by case, spaces or hyphens only; {cure}", left_out=False)
        for other, name in pairs
        if other != name
    ]
