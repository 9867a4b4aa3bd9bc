"""From the files of each class to a listing."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ssil.data.listing import Files, Labels, Listing, Look, Remark
from ssil.data.sources.subset import pick
from ssil.errors import UserError

Groups = Mapping[str, Sequence[str]]
"""The files of each class: paths relative to a root."""

OWN = Look(64, augment="auto")
"""How pictures of one's own are seen, if nothing else is wished for."""


def gather(
    name: str,
    root: Path,
    look: Look,
    train: Groups,
    test: Groups | None = None,
    titles: Mapping[str, str] | None = None,
    remarks: Sequence[Remark] = (),
) -> Listing:
    """The files of all classes, in the order of `train`. Where `test` is None, the test part is left open.

    `titles` are names to show in place of what the groups are called, which then become the keys.
    """
    called = tuple(dict.fromkeys([*train, *(test or {})]))
    sizes, files = [], []
    for groups in (train, test or {}):
        members = [groups.get(one, ()) for one in called]
        sizes.append([len(group) for group in members])
        files += [file for group in members for file in group]
    labels = np.concatenate([np.repeat(np.arange(len(called)), size) for size in sizes])
    tested = None if test is None else np.arange(len(labels)) >= sum(sizes[0])
    shown = called if titles is None else distinct(called, titles)
    keys = () if titles is None else called
    return complete(Listing(name, Files(root, tuple(files)), labels, shown, look, tested, tuple(remarks), keys))


def distinct(keys: Sequence[str], titles: Mapping[str, str]) -> tuple[str, ...]:
    """A title each; with the key where two would be the same but for case, and the key alone where there is none.

    >>> distinct(["n1", "n2", "n3", "n4"], {"n1": "crane", "n2": "tench", "n3": "crane"})
    ('crane (n1)', 'tench', 'crane (n3)', 'n4')
    """
    count = Counter(titles.get(key, key).casefold() for key in keys)
    named = ((key, titles.get(key, key)) for key in keys)
    return tuple(f"{title} ({key})" if count[title.casefold()] > 1 else title for key, title in named)


def complete(listing: Listing) -> Listing:
    """The listing without classes that have nothing to learn from; remarks tell of those and of other odd classes.

    Images to test on, of a class that has none to learn from, are refused.
    """
    learnt, tests = _counts(listing)
    strange = [listing.classes[label] for label in (tests * (learnt == 0)).nonzero()[0]]
    if strange:
        raise UserError(f"dataset: {listing.name} has files to test on but none to learn from of {_some(strange)}")
    if not learnt.any():
        raise UserError(f"dataset: {listing.name} has no files to learn from; add some to each class")
    kept = pick(listing, learnt.nonzero()[0].tolist())
    remarks = _lacking(listing.classes, learnt, "learn from")
    if listing.tested is not None:
        remarks += _lacking(kept.classes, tests[learnt > 0], "test on")
    return replace(kept, remarks=(*listing.remarks, *remarks, *_alike(kept.classes)))


def _counts(listing: Listing) -> tuple[Labels, Labels]:
    """How many images of each class are for training, and for testing."""
    tested = np.zeros(len(listing), dtype=bool) if listing.tested is None else listing.tested
    learnt, tests = (np.bincount(listing.labels[which], minlength=len(listing.classes)) for which in (~tested, tested))
    return learnt, tests


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more classes" if len(names) > 5 else "")


def _lacking(names: Sequence[str], counts: Labels, purpose: str) -> list[Remark]:
    lacking = (names[label] for label in (counts == 0).nonzero()[0])
    return [Remark(name, f"class {name!r} has no files to {purpose}", left_out=False) for name in lacking]


def _alike(names: Sequence[str]) -> list[Remark]:
    """Remarks on classes that may be one, spelt differently."""
    seen: dict[str, str] = {}
    pairs = ((seen.setdefault(name.casefold(), name), name) for name in names)
    return [
        Remark(name, f"classes {other!r} and {name!r} differ by case only", left_out=False)
        for other, name in pairs
        if other != name
    ]
