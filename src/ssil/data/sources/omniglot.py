"""Omniglot (Lake et al., Science 2015): 1,623 hand-written characters of 50 alphabets, 20 drawings of each."""

from pathlib import Path

from ssil.data.dataset import DatasetInfo
from ssil.data.image_index import ImageIndex, Preprocessing, Remark
from ssil.data.sources.class_files import gather
from ssil.data.sources.file_tree import classes, find, inside, unused

URL = "https://github.com/brendenlake/omniglot"
INFO = DatasetInfo("omniglot", "hand-written characters of 50 alphabets, 20 drawings each", "1623", "28x28 grey", URL)

PARTS = ("images_background", "images_evaluation")
PLACES = ("", "python", "omniglot", "omniglot/python", "omniglot-py", "omniglot-py/python")
LOOK = Preprocessing(28, channels=1, augment="shift", flip=False, mean=(0.92,), std=(0.24,))


def omniglot(root: Path | None = None) -> ImageIndex:
    """The characters of both official parts, or of the one that is there; a class is alphabet/character."""
    base = find(root, PLACES, PARTS, f"omniglot: unpack {PARTS[0]}.zip and {PARTS[1]}.zip of {URL}", enough=any)
    characters: dict[str, list[str]] = {}
    remarks: list[Remark] = []
    for part in PARTS:
        alphabets, loose, more = inside(base, part)
        remarks += more + unused(part, loose, "it belongs to no alphabet")
        for alphabet in alphabets:
            found, more = classes(base, f"{part}/{alphabet}")
            remarks += more
            for character, files in found.items():
                characters.setdefault(f"{alphabet}/{character}", []).extend(files)
    return gather("omniglot", base, LOOK, characters, remarks=remarks)
