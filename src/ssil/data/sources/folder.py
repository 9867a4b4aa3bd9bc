"""Image folders: a sub-folder a class."""

from pathlib import Path

from ssil.data.dataset import Info
from ssil.data.listing import Listing, Remark
from ssil.data.sources import tree
from ssil.data.sources.gather import OWN, gather
from ssil.errors import UserError

SIZE = f"{OWN.size}x{OWN.size} colour, or as you say"
INFO = Info("FOLDER", "your own image files, a sub-folder a class", "any", SIZE, "a folder")
TESTS = ("test", "val")


def folder(path: Path) -> Listing:
    """The files in a folder, whatever they are: a sub-folder a class, in natural order.

    With sub-folders `train` and `test` (or `val`), each of these has a sub-folder a class.
    """
    folders, files, _ = tree.inside(path, "")
    test = next((name for name in TESTS if name in folders), None)
    if test is None or "train" not in folders:
        classes, remarks = _classes(path, "")
        return gather(path.resolve().name, path, OWN, classes, remarks=remarks)
    train, remarks = _classes(path, "train")
    tested, more = _classes(path, test)
    others = [name for name in (*folders, *files) if name not in ("train", test)]
    more += tree.unused("", others, f"only train/ and {test}/ are")
    return gather(path.resolve().name, path, OWN, train, tested, remarks=remarks + more)


def _classes(path: Path, part: str) -> tuple[dict[str, list[str]], list[Remark]]:
    """The files of each class in this part of a folder, and remarks on what belongs to none."""
    classes, remarks = tree.classes(path, part)
    if not classes:
        raise UserError(
            f"dataset: {path / part} has no sub-folders to read; put the images of each class in one of its own"
        )
    return classes, remarks
