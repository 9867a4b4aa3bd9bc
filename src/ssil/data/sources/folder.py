"""Image folders: a sub-folder a class."""

from collections.abc import Sequence
from pathlib import Path

from ssil.core.errors import UserError
from ssil.data.dataset import DatasetInfo
from ssil.data.image_index import ImageIndex, Remark
from ssil.data.sources import file_tree
from ssil.data.sources.class_files import OWN, gather

SIZE = f"{OWN.size}x{OWN.size} colour, or as you say"
INFO = DatasetInfo("FOLDER", "your own image files, a sub-folder a class", "any", SIZE, "a folder")
TRAIN = ("train", "training")
TESTS = ("test", "testing", "val", "valid", "validation")


def folder(path: Path) -> ImageIndex:
    """The files in a folder, whatever they are: a sub-folder a class, in natural order.

    With a sub-folder `train`, and perhaps `test` (or `val`), in any case, each of these has a sub-folder a class.
    """
    folders, files, _ = file_tree.inside(path, "")
    train, test = (_named(folders, names) for names in (TRAIN, TESTS))
    if train is None or (test is None and file_tree.inside(path, train).files):  # or a class that is called so
        classes, remarks = _classes(path, "")
        return gather(path.resolve().name, path, OWN, classes, remarks=remarks)
    classes, remarks = _classes(path, train)
    tested, more = _classes(path, test) if test else (None, [])
    others = [name for name in (*folders, *files) if name not in (train, test)]
    more += file_tree.unused("", others, f"only {' and '.join(f'{name}/' for name in (train, test) if name)} are")
    return gather(path.resolve().name, path, OWN, classes, tested, remarks=remarks + more)


def _named(folders: Sequence[str], names: Sequence[str]) -> str | None:
    """The folder that has the first of these names."""
    return next((folder for name in names for folder in folders if folder.casefold() == name), None)


def _classes(path: Path, part: str) -> tuple[dict[str, list[str]], list[Remark]]:
    """The files of each class in this part of a folder, and remarks on what belongs to none."""
    classes, remarks = file_tree.classes(path, part)
    if not classes:
        raise UserError(
            f"dataset: {path / part} has no sub-folders to read; put the images of each class in one of its own"
        )
    if not any(classes.values()) and (
        deeper := [name for name in classes if file_tree.inside(path / part, name).folders]
    ):
        raise UserError(
            f"dataset: {path / part} has folders in folders, but no files; perhaps {path / part / deeper[0]}?"
        )
    return classes, remarks
