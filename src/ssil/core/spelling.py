"""Names that are spelt alike: for hints after a misspelt name, and for classes that differ by case or spaces only."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from unicodedata import normalize

SEPARATORS = re.compile(r"[\s_\-.]+")
"""What stands between the words of a name."""
MIN_PART = 3
"""A name of this many letters or more is also looked for inside longer names."""


def plain_spelling(name: str) -> str:
    """Return a name without differences of case, accents' encoding, spaces, hyphens, dots and underscores.

    >>> plain_spelling(" Red-Bell_pepper "), plain_spelling("- -")
    ('redbellpepper', '- -')
    """
    return SEPARATORS.sub("", normalize("NFKC", name).casefold()) or name


def near_names(name: str, known: Iterable[str], count: int) -> list[str]:
    """Return at most `count` of the known names that are spelt like `name` or contain it, the nearest first.

    >>> near_names("Lern", ["learn", "run"], 2), near_names("milk", ["oat_milk", "soy_milk", "leek"], 2)
    (['learn'], ['soy_milk', 'oat_milk'])
    """
    wanted, spelt = plain_spelling(name), dict[str, list[str]]()
    for one in known:
        spelt.setdefault(plain_spelling(one), []).append(one)
    close = get_close_matches(wanted, spelt, count)
    inside = [one for one in spelt if wanted in one] if len(wanted) >= MIN_PART else []
    return [one for spelling in dict.fromkeys([*close, *inside]) for one in spelt[spelling]][:count]
