"""Omniglot (Lake et al., Science 2015): 1,623 hand-written characters of 50 alphabets, 20 drawings of each."""

from pathlib import Path

from ssil.data.dataset import Info
from ssil.data.listing import Listing, Look, Remark
from ssil.data.sources.gather import gather
from ssil.data.sources.tree import entries, find

URL = "https://github.com/brendenlake/omniglot"
INFO = Info("omniglot", "hand-written characters of 50 alphabets, 20 drawings each", "1623", "28x28 grey", URL)

PARTS = ("images_background", "images_evaluation")
PLACES = ("", "python", "omniglot", "omniglot/python", "omniglot-py", "omniglot-py/python")
LOOK = Look(28, channels=1, augment="shift", flip=False, mean=(0.92,), std=(0.24,))


def omniglot(root: Path | None = None) -> Listing:
    """The characters of both official parts, or of the one that is there; a class is alphabet/character."""
    base = find(root, PLACES, PARTS, f"omniglot: unpack {PARTS[0]}.zip and {PARTS[1]}.zip of {URL}", enough=any)
    parts = [part for part in PARTS if (base / part).is_dir()]
    classes = {
        name: [f"{part}/{name}/{file}" for file in entries(base / part / name)[1]]
        for part in parts
        for alphabet in entries(base / part)[0]
        for name in (f"{alphabet}/{character}" for character in entries(base / part / alphabet)[0])
    }
    absent = [part for part in PARTS if part not in parts]
    remarks = [Remark(part, "is not there, so its characters are missing", left_out=False) for part in absent]
    return gather("omniglot", base, LOOK, classes, remarks=remarks)
