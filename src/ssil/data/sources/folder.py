"""Image folders: a sub-folder a class."""

from pathlib import Path

from ssil.data.dataset import Info
from ssil.data.listing import Listing, Remark
from ssil.data.sources.gather import OWN, gather
from ssil.data.sources.tree import entries
from ssil.errors import UserError

SIZE = f"{OWN.size}x{OWN.size} colour, or as you say"
INFO = Info("FOLDER", "your own image files, a sub-folder a class", "any", SIZE, "a folder")
TESTS = ("test", "val")


def folder(path: Path) -> Listing:
    """The files in a folder, whatever they are: a sub-folder a class, in natural order.

    With sub-folders `train` and `test` (or `val`), each of these has a sub-folder a class.
    """
    parts, _ = entries(path)
    test = next((name for name in TESTS if name in parts), None)
    if test is None or "train" not in parts:
        classes, remarks = _classes(path, "")
        return gather(path.resolve().name, path, OWN, classes, remarks=remarks)
    train, remarks = _classes(path, "train/")
    tested, more = _classes(path, f"{test}/")
    more += [_unused(name, f"only train/ and {test}/ are used") for name in parts if name not in ("train", test)]
    return gather(path.resolve().name, path, OWN, train, tested, remarks=remarks + more)


def _classes(path: Path, part: str) -> tuple[dict[str, list[str]], list[Remark]]:
    """The files of each class under this part of the path, and remarks on what belongs to none."""
    names, loose = entries(path / part)
    if not names:
        raise UserError(
            f"dataset: {path / part} has no sub-folders: put the images of each class in a sub-folder of its own"
        )
    remarks = [_unused(f"{part}{file}", "it lies in no class's folder") for file in loose]
    classes = {}
    for name in names:
        deeper, files = entries(path / part / name)
        classes[name] = [f"{part}{name}/{file}" for file in files]
        remarks += [Remark(f"{part}{name}/{deep}", "a folder inside a class is not looked into") for deep in deeper]
    return classes, remarks


def _unused(path: str, reason: str) -> Remark:
    return Remark(path, f"not used: {reason}", left_out=False)
