"""A model's history, and the names that a class has had in it."""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

History = Sequence[Mapping[str, Any]]
"""One entry per change that led to a version, the newest last."""


def name_there(name: str, here: History, there: History) -> str | None:
    """Return the name in version `there` of the class called `name` in version `here`; None if it is unknown there.

    Renamings are undone back to the last common entry of both histories, then those of `there` are applied. A class
    that arrived after the common entry is the one that arrived in `there` under the same name, if there is one.

    >>> past = [{"new": ["ant", "bee"]}]
    >>> name_there("wasp", [*past, {"renamed": ["bee", "wasp"]}], [*past, {"renamed": ["bee", "fly"]}])
    'fly'
    >>> name_there("bee", [*past, {"renamed": ["bee", "wasp"]}, {"new": ["bee"]}], past)
    """
    both = zip(without_suspects(here), without_suspects(there), strict=False)
    common = len([*takewhile(lambda pair: pair[0] == pair[1], both)])
    exists = True
    for entry in reversed(here[common:]):
        if name in entry.get("new", ()):
            exists = False
            break
        before, after = entry.get("renamed", (name, name))
        name = before if name == after else name
    for entry in there[common:]:
        exists = exists or name in entry.get("new", ())
        before, after = entry.get("renamed", (name, name))
        name = after if exists and name == before else name
    return name if exists else None


def without_suspects(history: History) -> list[dict[str, Any]]:
    """Return a history without what it says of single images: their names and checksums.

    >>> without_suspects([{"new": ["ant"], "suspects": [{"image": "ant/3.jpg"}]}])
    [{'new': ['ant']}]
    """
    return [{key: value for key, value in entry.items() if key != "suspects"} for entry in history]
