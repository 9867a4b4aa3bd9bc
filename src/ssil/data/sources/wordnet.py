"""Classes known by WordNet ids, and their human names."""

import re
from collections.abc import Iterable
from pathlib import Path

from ssil.data.sources.tree import text

WNID = re.compile(r"n\d{8}")
NAMES = ("LOC_synset_mapping.txt", "words.txt")


def titles(places: Iterable[Path]) -> dict[str, str]:
    """The first name of each wnid, from the first file of names that lies in these places; empty without one."""
    path = next((place / name for place in places for name in NAMES if (place / name).is_file()), None)
    return {} if path is None else dict(map(_entry, text(path).splitlines()))


def _entry(line: str) -> tuple[str, str]:
    """From "n01440764 tench, Tinca tinca" to the wnid and "tench"."""
    wnid, _, names = " ".join(line.split()).partition(" ")
    return wnid, names.partition(",")[0] or wnid
