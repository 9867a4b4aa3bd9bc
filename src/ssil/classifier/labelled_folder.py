"""A test folder: the user's own labelled images by which a model is tested, one sub-folder per class.

Nothing here imports torch, which `ssil test` need not load.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ssil.classifier.image_file import normalized_name
from ssil.core.errors import UserError
from ssil.core.files import checksum
from ssil.data.image_index import Remark, as_utf8, error_reason, read_image_file

TEST, TRAIN = "test", "train"
"""The sub-folders of a data set with both parts, of which the first is the test folder."""


class LabelledPath(NamedTuple):
    """An image file with the name of its class."""

    path: Path
    label: str
    digest: str
    """The checksum of the file's bytes."""


def find_test_images(folder: Path) -> tuple[list[LabelledPath], list[Remark]]:
    """Return the image files in the sub-folders of a test folder, and remarks on files that can't be read.

    If the folder has a sub-folder `train` and one named `test`, the classes are those of `test`.

    Raises:
        UserError: There is no such folder, or it has no sub-folder with a file.
    """
    if not folder.is_dir():
        raise UserError(f"test: {folder} is no folder; give one with a sub-folder of images for each class")
    root = folder / TEST if {TEST, TRAIN} <= {path.name for path in _entries(folder)} else folder
    found, remarks = list[LabelledPath](), list[Remark]()
    for path, label in _files(root):
        try:
            found.append(LabelledPath(path, label, checksum(read_image_file(path))))
        except OSError as error:
            remarks.append(Remark(as_utf8(str(path)), error_reason(error)))
    if not found:
        raise UserError(f"test: {root} has no images; put those of each class in a sub-folder with the class's name")
    return found, remarks


def _files(root: Path) -> Iterator[tuple[Path, str]]:
    for class_folder in _entries(root):
        if class_folder.is_dir():
            label = normalized_name(as_utf8(class_folder.name))
            yield from ((path, label) for path in _entries(class_folder) if not path.is_dir())


def _entries(folder: Path) -> list[Path]:
    """Return what is in a folder, in order, without hidden entries."""
    with os.scandir(folder) as entries:
        return sorted(Path(entry.path) for entry in entries if not entry.name.startswith("."))


def contents_digest(images: Sequence[LabelledPath]) -> str:
    """Return a checksum of a test folder's images and their classes, whatever their files are called."""
    return checksum("\n".join(sorted(f"{one.digest} {one.label}" for one in images)).encode())
