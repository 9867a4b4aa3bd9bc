"""Omniglot (Lake et al., Science 2015): 1,623 hand-written characters of 50 alphabets, 20 drawings of each."""

from pathlib import Path

from ssil.data.dataset import DatasetInfo
from ssil.data.image_index import ImageIndex, Preprocessing, Remark
from ssil.data.sources.folder import files_by_class, find_base, index_files, list_folder, unused

URL = "https://github.com/brendenlake/omniglot"
INFOS = (
    DatasetInfo("omniglot", "hand-written characters of 50 alphabets, 20 drawings each", "1623", "28x28 grey", URL),
)

PARTS = ("images_background", "images_evaluation")
PLACES = ("", "python", "omniglot", "omniglot/python", "omniglot-py", "omniglot-py/python")
PREPROCESSING = Preprocessing(28, channels=1, augment="shift", flip=False, mean=(0.92,), std=(0.24,))


def omniglot(root: Path | None = None) -> ImageIndex:
    """Return the characters of both official parts, or of the one that is there; a class is alphabet/character."""
    base = find_base(root, PLACES, PARTS, f"omniglot: unpack {PARTS[0]}.zip and {PARTS[1]}.zip of {URL}", enough=any)
    characters: dict[str, list[str]] = {}
    remarks: list[Remark] = []
    for part in PARTS:
        alphabets, files, more = list_folder(base, part)
        remarks += more + unused(part, files, "it belongs to no alphabet")
        for alphabet in alphabets:
            classes, more = files_by_class(base, f"{part}/{alphabet}")
            remarks += more
            for character, drawings in classes.items():
                characters.setdefault(f"{alphabet}/{character}", []).extend(drawings)
    return index_files("omniglot", base, PREPROCESSING, characters, remarks=remarks)
